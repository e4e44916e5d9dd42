"""Java for Spark: runtime, class path, class-data archive, gateway and session."""
