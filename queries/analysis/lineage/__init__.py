"""Lineage: which functions of packet fields determine the rows of a node, and their meets."""
