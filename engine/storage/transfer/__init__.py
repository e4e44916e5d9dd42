"""Files of a run for executors on other hosts, which read and write them over Arrow Flight."""
