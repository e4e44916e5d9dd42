"""Child processes: states, start, liveness, restart and recovery."""
