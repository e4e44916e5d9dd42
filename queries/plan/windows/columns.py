"""The names of the columns of a window, inside a plan and outside.

Inside a plan, no query can write them.
"""

WINDOW_START = "$window_start"
WINDOW_END = "$window_end"
SLICE = "$slice"
"""The epoch of the LFTA below a window: the number of the slice."""
WINDOW_TIME = "$window_time"
"""The time of a row for windows over the result: the last one in its window."""

WRITTEN = {"window_start": WINDOW_START, "window_end": WINDOW_END}
"""The names that queries use for the start and end of a window."""
