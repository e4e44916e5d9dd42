"""Queries that ship with gscope."""
