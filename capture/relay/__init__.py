"""Relays: partial tuples of other hosts, added up and logged as one stream for each LFTA."""
