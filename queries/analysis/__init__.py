"""Names, types, temporal properties and validity of a query."""
