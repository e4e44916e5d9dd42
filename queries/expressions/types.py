"""The types of GSQL and the ordering of a column."""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from gscope.records import dataclass


class GsqlType(Enum):
    """What a value is, and the plain Python value that stands for it in plans and interpreters.

    ========= ====================================================== ==================
    type      holds                                                  Python value
    ========= ====================================================== ==================
    BOOL      true or false                                          bool
    INT       64-bit signed, wraps                                   int
    FLOAT     double                                                 float
    STRING    bytes                                                  bytes
    IP        128 bits, see ``scalar/addresses.py``                  int (unsigned)
    MAC       48 bits, shown as ``aa:bb:cc:dd:ee:ff``                int
    TIMESTAMP nanoseconds since 1970, UTC                            int
    INTERVAL  nanoseconds                                            int
    NULL      the type of a bare NULL, compatible with every other   None
    ========= ====================================================== ==================
    """

    BOOL = "BOOL"
    INT = "INT"
    FLOAT = "FLOAT"
    STRING = "STRING"
    IP = "IP"
    MAC = "MAC"
    TIMESTAMP = "TIMESTAMP"
    INTERVAL = "INTERVAL"
    NULL = "NULL"


HASHED_TYPES = frozenset(GsqlType) - {GsqlType.NULL, GsqlType.FLOAT, GsqlType.STRING}
"""The types by whose values rows are sampled or divided.

An IP is two words of 64 bits, a value of any other type is one. Equal FLOATs may have different
bits.
"""


class Direction(Enum):
    """How the values of a column move from tuple to tuple."""

    INCREASING = "increasing"
    DECREASING = "decreasing"
    CONSTANT = "constant"
    VARYING = "varying"


@dataclass(frozen=True, slots=True)
class Ordering:
    """The declared or inferred ordering of a column.

    Attributes:
        direction: whether values never decrease, never increase, never change, or vary.
        band: by how much the column may step against its direction, in its own unit; 0 for none.
        step: the difference of consecutive values, 0 where it varies; see
            ``queries/catalog/ordering/progression.py``.
        reach: the greatest absolute value while clocks show the times of these decades, 0 where it
            is unknown; see ``queries/catalog/scalar/magnitudes.py``. Orderings that differ only in
            it and in the step are equal.
    """

    direction: Direction
    band: int = 0
    step: int = field(default=1, compare=False)
    reach: int = field(default=0, compare=False)

    @property
    def is_temporal(self) -> bool:
        """Whether the column can close groups: it moves in one direction."""
        return self.direction in (Direction.INCREASING, Direction.DECREASING)


INCREASING = Ordering(Direction.INCREASING)
DECREASING = Ordering(Direction.DECREASING)
CONSTANT = Ordering(Direction.CONSTANT)
VARYING = Ordering(Direction.VARYING)
