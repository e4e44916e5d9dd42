"""How expressions of ordered columns are ordered."""
