"""Lengths of time as text: a number and a unit, or a sum of these."""

from __future__ import annotations

import re

from gscope.queries.int64 import MAX_INT

UNITS_NS = {
    "week": 604_800_000_000_000,
    "day": 86_400_000_000_000,
    "hour": 3_600_000_000_000,
    "min": 60_000_000_000,
    "sec": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
"""Units of an interval in nanoseconds, by canonical name, longest first."""

_UNIT_SPELLINGS = {
    "week": ("w", "week", "weeks"),
    "day": ("d", "day", "days"),
    "hour": ("h", "hr", "hour", "hours"),
    "min": ("m", "min", "mins", "minute", "minutes"),
    "sec": ("s", "sec", "secs", "second", "seconds"),
    "ms": ("ms", "msec", "millisecond", "milliseconds"),
    "us": ("us", "usec", "microsecond", "microseconds"),
    "ns": ("ns", "nsec", "nanosecond", "nanoseconds"),
}
_UNIT_OF = {spelling: unit for unit, spellings in _UNIT_SPELLINGS.items() for spelling in spellings}


_INTERVAL_PART = re.compile(r"([0-9.]{1,40})\s*([A-Za-z]+)")
_INTERVAL = re.compile(rf"(?:{_INTERVAL_PART.pattern}\s*)+", re.ASCII)
_LONGEST_INTERVAL = 200


def read_interval_ns(text: str) -> int | None:
    """Return the nanoseconds of ``5 sec``, ``1.5 min`` or ``1 min 30 sec``.

    None if the text is not such a length, names a unit twice or is not a whole number of
    nanoseconds.
    """
    if len(text) > _LONGEST_INTERVAL or not _INTERVAL.fullmatch(text.strip()):
        return None
    length_ns, units = 0, set()
    for number, word in _INTERVAL_PART.findall(text):
        unit = _UNIT_OF.get(word.lower())
        whole, _, decimals = number.partition(".")
        if unit is None or unit in units or not (whole + decimals).isdecimal():
            return None
        units.add(unit)
        part_ns, rest = divmod(int(whole + decimals) * UNITS_NS[unit], 10 ** len(decimals))
        if rest:
            return None
        length_ns += part_ns
    return length_ns if length_ns <= MAX_INT else None
