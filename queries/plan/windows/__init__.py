"""Sliding windows: where they begin and end, and the slices from which they are assembled."""
