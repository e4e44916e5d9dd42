"""The cores of this machine that a process may use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return the number of cores on which this process may run."""
    return len(os.sched_getaffinity(0))
