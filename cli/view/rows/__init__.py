"""Rows of the live view: epochs, order, filter, sparklines."""
