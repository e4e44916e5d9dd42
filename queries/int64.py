"""The ends of a signed 64-bit integer: of GSQL's INT, and of times in nanoseconds."""

from __future__ import annotations

MAX_INT = (1 << 63) - 1
MIN_INT = -(1 << 63)

MIN_TIME_NS = MIN_INT
"""The earliest time of a packet; also stands for "before all packets"."""

MAX_TIME_NS = MAX_INT
"""The latest time of a packet, in the year 2262; also stands for "after all packets"."""
