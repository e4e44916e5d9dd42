"""What names mean: queries, protocols, watchlists, columns and scopes."""
