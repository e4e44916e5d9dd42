"""Destinations beyond this machine's files: rows wait in a spool until a server accepts them."""
