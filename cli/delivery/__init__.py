"""Delivery of rows, from the steps and streams of a run to its sink."""
