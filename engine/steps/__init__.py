"""The control plane: which rows a step reads, what holds it up, and its share of the disk."""
