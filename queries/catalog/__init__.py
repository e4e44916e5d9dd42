"""Types, schemas, protocols, functions and aggregates, as tables."""
