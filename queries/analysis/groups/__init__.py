"""Grouping: keys, epochs and CLOSING_WHEN."""
