"""Joins and merges: sides, conditions, intervals and refusals."""
