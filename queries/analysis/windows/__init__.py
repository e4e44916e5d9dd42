"""Windows: lengths and their units, the ordering column, and groups by window."""
