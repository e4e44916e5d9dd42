"""Conversions between BOOL, INT, FLOAT and STRING; those of addresses and times are elsewhere."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from gscope.queries.catalog.scalar.entry import (
    KEEPS,
    FunctionEntry,
    Parameter,
    always,
)
from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.catalog.scalar.magnitudes import INT_LIMIT, magnitude
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.expressions import Expression

_BOOL = Parameter(GsqlType.BOOL)
_INT = Parameter(GsqlType.INT)
_FLOAT = Parameter(GsqlType.FLOAT)
_STRING = Parameter(GsqlType.STRING)

_NUMBER = re.compile(rb"[+-]?[0-9]{1,40}")


def _float_to_int(a: float) -> int | None:
    if not math.isfinite(a):
        return None
    value = math.trunc(a)
    return value if value == wrap(value) else None


def _may_not_fit(arguments: Sequence[Expression]) -> bool:
    return magnitude(arguments[0]) >= INT_LIMIT


def format_float(value: float) -> str:
    """Return the shortest digits that read back as the same double, as Java's ``Double.toString``.

    ``12.5``, ``1.0E7``, ``1.25E-4``, ``NaN``, ``Infinity``.
    """
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The value is 0.digits times ten to the power of `point`.
    point = int(exponent or 0) + len(whole) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if -3 < point <= 7:
        padded = "0" * max(0, 1 - point) + digits
        head = max(point, 1)
        padded = padded.ljust(head, "0")
        return f"{sign}{padded[:head]}.{padded[head:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _string_to_int(text: bytes) -> int | None:
    if not _NUMBER.fullmatch(text):
        return None
    value = int(text)
    return value if value == wrap(value) else None


_FUNCTIONS = (
    FunctionEntry("int_to_float", (_INT,), GsqlType.FLOAT, float, gains=(KEEPS,)),
    FunctionEntry(
        "float_to_int",
        (_FLOAT,),
        GsqlType.INT,
        _float_to_int,
        makes_null=_may_not_fit,
        cost=3,
        gains=(KEEPS,),
    ),
    FunctionEntry("bool_to_int", (_BOOL,), GsqlType.INT, int, cost=0, gains=(KEEPS,)),
    FunctionEntry("int_to_bool", (_INT,), GsqlType.BOOL, bool),
    FunctionEntry(
        "bool_to_string",
        (_BOOL,),
        GsqlType.STRING,
        lambda a: b"true" if a else b"false",
        cost=50,
        is_lfta_safe=False,
    ),
    FunctionEntry(
        "int_to_string",
        (_INT,),
        GsqlType.STRING,
        lambda a: b"%d" % a,
        cost=50,
        is_lfta_safe=False,
    ),
    FunctionEntry(
        "float_to_string",
        (_FLOAT,),
        GsqlType.STRING,
        lambda a: format_float(a).encode(),
        cost=100,
        is_lfta_safe=False,
    ),
    FunctionEntry(
        "string_to_int",
        (_STRING,),
        GsqlType.INT,
        _string_to_int,
        makes_null=always,
        cost=50,
        is_lfta_safe=False,
    ),
)
CONVERSIONS = {entry.name: entry for entry in _FUNCTIONS}
