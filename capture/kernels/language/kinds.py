"""Kinds of the values in a kernel.

Kernels compute with few types, so that a kind determines everything: how many LLVM values a value
has, which operations it allows, and how two kinds unite in a variable that is assigned both.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from gscope.records import dataclass


class Kind(Enum):
    """The kind of a single value. BOOL, INT and FLOAT ascend: each converts to the next."""

    BOOL = 0
    INT = 1
    """A signed number of 64 bits, or an address."""
    FLOAT = 2
    WORDS = 3
    """An array of INT, by its address."""
    ROWS = 4
    """An array of arrays of INT: its address, and the bytes from one row to the next."""
    NOTHING = 5
    """What a function without a result returns."""


@dataclass(frozen=True, slots=True)
class RecordKind:
    """The kind of a tuple, whose values are passed one by one.

    Attributes:
        record: the class of a named tuple; None for a plain one.
        parts: kinds of its fields.
    """

    record: type[Any] | None
    parts: tuple[AnyKind, ...]


AnyKind = Kind | RecordKind


def record_of_ints(record: type[Any]) -> RecordKind:
    """Return the kind of a named tuple whose fields are all numbers or addresses."""
    fields: tuple[str, ...] = getattr(record, "_fields", ())
    return RecordKind(record, (Kind.INT,) * len(fields))


def word_count(kind: AnyKind) -> int:
    """Return how many words of 64 bits a value of this kind has as an argument or a result."""
    if isinstance(kind, RecordKind):
        return sum(map(word_count, kind.parts))
    return {Kind.ROWS: 2, Kind.NOTHING: 0}.get(kind, 1)
