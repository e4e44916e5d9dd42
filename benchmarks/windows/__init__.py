"""Sliding windows: tuples shipped (S1), time (S2), and cost by overlap."""
