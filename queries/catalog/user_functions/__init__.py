"""User functions and aggregates: files, installation, checks and calls."""
