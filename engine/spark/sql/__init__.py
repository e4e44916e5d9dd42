"""Operators and expressions as SQL text."""
