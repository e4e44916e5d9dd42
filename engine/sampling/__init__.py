"""The sampling operator: tuples of whole windows, in order, become sampled groups."""
