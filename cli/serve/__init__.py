"""Answers in files, served to other programs over Arrow Flight."""
