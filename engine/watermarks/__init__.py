"""Bounds of punctuation: ports, watermarks and the release of epochs."""
