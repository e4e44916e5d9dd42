"""Answers of this run in its log, for runs on other hosts."""
