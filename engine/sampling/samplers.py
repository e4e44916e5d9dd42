"""The stateful functions of the library.

Kernels include the text of these functions, as that of ``kernel_functions.py``. A state is a row of
floats, counts of less than 2^53 among them; ``live`` is the number of groups that live in the
supergroup.

For each state: ``init_…`` makes a fresh one, ``next_…`` that of a window from that of the window
before, ``final_…`` is called once at the end of a window, before HAVING.
"""

# ruff: noqa: ARG001 - functions of one state have the same first parameters.

from __future__ import annotations

from typing import Any

Z, Z_BEFORE, SIZE, COUNTER, CLEANED, LEFT, LAST_TIME = 0, 1, 2, 3, 4, 5, 6
"""The places in the state of threshold sampling: the threshold, the one before the last cleaning,
the wanted size, the counters of small weights of tuples and of groups in a cleaning, the groups at
the end of the window, and the last time that a flow sampler was given."""

FRESH_Z, GAMMA = 200.0, 2.0

WIDTH, COUNT, BUCKET = 0, 1, 2
"""The places in the state of lossy counting."""


def init_subset_sum(state: Any) -> None:
    """Begin with a threshold of 200."""
    state[:] = 0.0
    state[Z] = FRESH_Z


def next_subset_sum(state: Any, before: Any) -> None:
    """Begin with the threshold of the window before.

    It is lowered as far as that window kept fewer than wanted.
    """
    state[:] = 0.0
    state[Z] = before[Z]
    if before[SIZE] > 0 and before[LEFT] < before[SIZE]:
        state[Z] = before[Z] * before[LEFT] / before[SIZE]
    if state[Z] < 1.0:
        state[Z] = 1.0


def final_subset_sum(state: Any, live: int) -> None:
    """Raise the threshold in proportion if there are more groups than wanted."""
    state[LEFT] = live
    state[Z_BEFORE] = state[Z]
    state[CLEANED] = 0.0
    if state[SIZE] > 0 and live >= state[SIZE]:
        state[Z] = state[Z] * live / state[SIZE]


def ssample(state: Any, live: int, x: float, n: int) -> bool:
    """Keep a tuple of a weight above z, of the others one for each z of their weights."""
    state[SIZE] = n
    if x > state[Z]:
        return True
    if not x > 0.0:
        return False
    state[COUNTER] += x
    if state[COUNTER] >= state[Z]:
        state[COUNTER] -= state[Z]
        return True
    return False


def ssdo_clean(state: Any, live: int) -> bool:
    """Raise z by the factor gamma once more than gamma times the wanted groups live."""
    if live <= GAMMA * state[SIZE]:
        return False
    state[Z_BEFORE] = state[Z]
    state[Z] = GAMMA * state[Z]
    state[COUNTER] = 0.0
    state[CLEANED] = 0.0
    return True


def ssclean_with(state: Any, live: int, x: float) -> bool:
    """Sample a group again, which stands for at least the z before the last rise."""
    weight = x if x > state[Z_BEFORE] else state[Z_BEFORE]
    if weight > state[Z]:
        return True
    state[CLEANED] += weight
    if state[CLEANED] >= state[Z]:
        state[CLEANED] -= state[Z]
        return True
    return False


def ssfinal_clean(state: Any, live: int, x: float) -> bool:
    """Sample a group again at the end of a window that has more groups than wanted."""
    if state[LEFT] <= state[SIZE]:
        return True
    return ssclean_with(state, live, x)


def ssthreshold(state: Any, live: int) -> float:
    """Return z."""
    return float(state[Z])


def flow_ssample(state: Any, live: int, n: int) -> bool:
    """Keep every tuple: flows are sampled when they have ended."""
    state[SIZE] = n
    return True


def flow_ssdo_clean(state: Any, live: int, time: int) -> bool:
    """Clean when time moves on and more than gamma times the wanted flows live."""
    if time == state[LAST_TIME]:
        return False
    state[LAST_TIME] = time
    if live <= GAMMA * state[SIZE]:
        return False
    state[Z] = GAMMA * state[Z]
    state[CLEANED] = 0.0
    return True


def flow_ssclean_with(  # the arguments of the publication
    state: Any, live: int, marks: Any, group: int, ended: bool, delay: int, last: int, size: float
) -> bool:
    """Sample an ended flow again, which stands for its size or the last z that it survived."""
    if not ended and state[LAST_TIME] - last < delay:
        return True
    return thinned(state, marks, group, size)


def flow_ssfinal_clean(
    state: Any, live: int, marks: Any, group: int, ended: bool, delay: int, last: int, size: float
) -> bool:
    """Sample every flow at the end of a window, so that all of them stand for z at least."""
    return thinned(state, marks, group, size)


def thinned(state: Any, marks: Any, group: int, size: float) -> bool:
    """Return whether a flow survives z, and note z for it if it does."""
    weight = size if size > marks[group] else marks[group]
    if weight > state[Z]:
        return True
    state[CLEANED] += weight
    if state[CLEANED] >= state[Z]:
        state[CLEANED] -= state[Z]
        marks[group] = state[Z]
        return True
    return False


def init_lossy_count(state: Any) -> None:
    """Begin with bucket 1."""
    state[WIDTH] = 0.0
    state[COUNT] = 0.0
    state[BUCKET] = 1.0


def next_lossy_count(state: Any, before: Any) -> None:
    """Begin with bucket 1: each window counts for itself."""
    init_lossy_count(state)


def final_lossy_count(state: Any, live: int) -> None:
    """Leave the buckets as they are."""


def local_count(state: Any, live: int, width: int) -> bool:
    """Count a tuple; after each ``width`` of them, begin the next bucket and return True."""
    state[COUNT] += 1.0
    if state[COUNT] < width:
        return False
    state[COUNT] = 0.0
    state[BUCKET] += 1.0
    return True


def current_bucket(state: Any, live: int) -> int:
    """Return the number of the bucket."""
    return int(state[BUCKET])


SLOTS = {"subset_sum": 7, "lossy_count": 3}
"""The length of each state."""

READS_GROUP = frozenset({"flow_ssclean_with", "flow_ssfinal_clean"})
"""The functions that also get the marks of groups, and the group."""
