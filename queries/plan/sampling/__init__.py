"""Samples of packets in plans: components, the keyed hash, scaled and moving samples."""
