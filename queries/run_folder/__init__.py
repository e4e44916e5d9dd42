"""Files of a run's folder that several processes read."""
