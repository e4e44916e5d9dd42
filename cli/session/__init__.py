"""One run from request to end: compilation, lifecycle, signals and service manager."""
