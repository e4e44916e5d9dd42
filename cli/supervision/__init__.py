"""Child processes: start, liveness, restart and recovery."""
