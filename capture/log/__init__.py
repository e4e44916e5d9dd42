"""The stream log on disk and its Arrow Flight server."""
