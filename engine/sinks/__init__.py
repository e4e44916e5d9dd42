"""Answers as columns, text and files."""
