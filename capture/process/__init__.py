"""The capture daemon as a process: events, counters and the watchdog of its threads."""
