"""Functions on FLOAT: IEEE doubles, except that NULL is the result outside a function's domain."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gscope.queries.catalog.scalar.entry import (
    FLIPS,
    KEEPS,
    FunctionEntry,
    Parameter,
    always,
    loses,
    unless_nonzero_literal,
)
from gscope.queries.catalog.scalar.integers import divisor, factor
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable

_FLOAT = GsqlType.FLOAT
_ONE = (Parameter(_FLOAT),)
_TWO = (Parameter(_FLOAT), Parameter(_FLOAT))


def _divide(a: float, b: float) -> float | None:
    return None if b == 0 else a / b


def _remainder(a: float, b: float) -> float | None:
    if b == 0:
        return None
    if math.isinf(a) or math.isnan(a) or math.isnan(b):
        return math.nan
    return math.fmod(a, b)


def _whole(rule: Callable[[float], int]) -> Callable[[float], float]:
    """Return ``rule`` for values with a fraction; zeros become positive, as back ends differ."""

    def rounded(a: float) -> float:
        return float(rule(a)) if math.isfinite(a) else a

    return rounded


def _nearest(a: float) -> int:
    """Return the nearest whole number, of a half the one farther from zero."""
    whole = math.trunc(a)
    if abs(a - whole) < 0.5:
        return whole
    return whole + (1 if a > 0 else -1)


def _positive(rule: Callable[[float], float]) -> Callable[[float], float | None]:
    def logarithm(a: float) -> float | None:
        return None if a <= 0 else rule(a)

    return logarithm


def _square_root(a: float) -> float | None:
    return None if a < 0 else math.sqrt(a)


def _power(a: float, b: float) -> float | None:
    """Return C's pow; NULL for a negative base to a fraction, and for zero to a negative power."""
    try:
        return math.pow(a, b)
    except ValueError:
        return None
    except OverflowError:
        return -math.inf if a < 0 and math.fmod(b, 2) != 0 else math.inf


_FUNCTIONS = (
    FunctionEntry("add_float", _TWO, _FLOAT, lambda a, b: a + b, gains=(KEEPS, KEEPS)),
    FunctionEntry("sub_float", _TWO, _FLOAT, lambda a, b: a - b, gains=(KEEPS, FLIPS)),
    FunctionEntry("mul_float", _TWO, _FLOAT, lambda a, b: a * b, gains=(factor(1), factor(0))),
    FunctionEntry("neg_float", _ONE, _FLOAT, lambda a: -a, gains=(FLIPS,)),
    FunctionEntry("abs_float", _ONE, _FLOAT, abs),
    FunctionEntry(
        "div_float",
        _TWO,
        _FLOAT,
        _divide,
        makes_null=unless_nonzero_literal(1),
        cost=5,
        gains=(divisor, loses),
    ),
    FunctionEntry(
        "mod_float", _TWO, _FLOAT, _remainder, makes_null=unless_nonzero_literal(1), cost=20
    ),
    FunctionEntry("floor_float", _ONE, _FLOAT, _whole(math.floor), cost=2, gains=(KEEPS,)),
    FunctionEntry("ceil_float", _ONE, _FLOAT, _whole(math.ceil), cost=2, gains=(KEEPS,)),
    FunctionEntry("round_float", _ONE, _FLOAT, _whole(_nearest), cost=2, gains=(KEEPS,)),
    # The last bit of libm's results differs between platforms, so these stay on Spark.
    *(
        FunctionEntry(
            name, parameters, _FLOAT, rule, makes_null=always, cost=20, is_lfta_safe=False
        )
        for name, parameters, rule in (
            ("sqrt", _ONE, _square_root),
            ("log", _ONE, _positive(math.log)),
            ("log2", _ONE, _positive(math.log2)),
            ("log10", _ONE, _positive(math.log10)),
            ("pow", _TWO, _power),
        )
    ),
)
FLOATS = {entry.name: entry for entry in _FUNCTIONS}
