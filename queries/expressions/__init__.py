"""Types, schemas and typed expressions."""
