"""Blocks of packets and the bounded ring they travel in."""
