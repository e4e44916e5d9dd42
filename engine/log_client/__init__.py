"""The job's client of the stream log: Arrow Flight and the inbox."""
