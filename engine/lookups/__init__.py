"""Lookups: local files that give names and numbers to addresses and ports."""
