"""Thinning: a nearly full log removes rows of a sample by their hash, so that the rest is whole."""
