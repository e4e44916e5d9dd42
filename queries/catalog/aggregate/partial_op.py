"""Partial aggregates: the folds of an LFTA."""

from __future__ import annotations

from enum import Enum


class PartialOp(Enum):
    """How an LFTA folds tuples into a group; ``merge`` of two partials is the same fold.

    COUNT without an argument counts tuples, otherwise non-NULL arguments; it merges by SUM. All
    others skip NULL arguments and are NULL if all were. Integers wrap.
    """

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    OR = "or"
    AND = "and"
    XOR = "xor"
