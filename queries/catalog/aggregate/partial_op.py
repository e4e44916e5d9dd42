"""Partial aggregates: what an LFTA can fold tuples into."""

from __future__ import annotations

from enum import Enum


class PartialOp(Enum):
    """How an LFTA folds tuples into a group; ``merge`` of two partials is the same fold.

    COUNT takes no argument (tuples) or counts non-NULL arguments; it merges by SUM. All others skip
    NULL arguments and are NULL when there was no other. Integers wrap.
    """

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    OR = "or"
    AND = "and"
    XOR = "xor"
