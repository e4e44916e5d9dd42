"""Rows of a step as files, staged until their commit."""
