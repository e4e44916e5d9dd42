"""Rewrite rules: one file, one function, plan to plan."""
