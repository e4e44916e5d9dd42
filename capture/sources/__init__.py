"""Packet sources: where packets come from, one file per kind."""
