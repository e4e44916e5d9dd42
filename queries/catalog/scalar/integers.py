"""Functions on INT: signed 64 bits that wrap."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from gscope.queries.catalog.scalar.entry import (
    FLIPS,
    KEEPS,
    FunctionEntry,
    Gain,
    Parameter,
    loses,
    number,
    unless_literal_from_zero,
    unless_nonzero_literal,
)
from gscope.queries.expressions.expressions import Expression, Literal
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Sequence

_INT = GsqlType.INT
_ONE = (Parameter(_INT),)
_TWO = (Parameter(_INT), Parameter(_INT))

# ``magnitudes.can_wrap`` recognises arithmetic that takes a clock beyond 64 bits; these limits keep
# expressions over columns of unknown magnitude from being ordered where no clock could be.
_LARGEST_FACTOR = 1 << 50
_LARGEST_SHIFT = 32


def wrap(value: int) -> int:
    """Return ``value`` modulo 2**64 as a signed number."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def divide(a: int, b: int) -> int | None:
    """Return ``a / b`` truncated toward zero; None by zero."""
    if b == 0:
        return None
    quotient = abs(a) // abs(b)
    return wrap(-quotient if (a < 0) != (b < 0) else quotient)


def divide_down(a: int, b: int) -> int | None:
    """Return ``a / b`` rounded down; None by zero."""
    return wrap(a // b) if b else None


def remainder(a: int, b: int) -> int | None:
    """Return the remainder of ``divide``, with the sign of ``a``; None by zero."""
    if b == 0:
        return None
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def shift_left(value: int, count: int) -> int | None:
    """Return ``value`` times 2 to the power of ``count``, wrapped; None for a negative count."""
    if count < 0:
        return None
    return wrap(value << count) if count < 64 else 0


def shift_right(value: int, count: int) -> int | None:
    """Return ``value`` without its last ``count`` bits, sign kept; None for a negative count."""
    return None if count < 0 else value >> min(count, 63)


def factor(position: int) -> Gain:
    """Return the gain of a product: the constant at ``position``."""

    def gain(arguments: Sequence[Expression]) -> Fraction | None:
        value = number(arguments[position])
        return None if value is None or abs(value) > _LARGEST_FACTOR else value

    return gain


def divisor(arguments: Sequence[Expression]) -> Fraction | None:
    """Return the gain of a division: one over its constant second argument."""
    value = number(arguments[1])
    return 1 / value if value else None


def _shift(sign: int) -> Gain:
    def gain(arguments: Sequence[Expression]) -> Fraction | None:
        count = arguments[1]
        if not isinstance(count, Literal) or not isinstance(count.value, int):
            return None
        bits = count.value
        if not 0 <= bits < 64:
            return None
        if sign > 0 and bits > _LARGEST_SHIFT:
            return None
        return Fraction(2) ** (sign * bits)

    return gain


_FUNCTIONS = (
    FunctionEntry("add_int", _TWO, _INT, lambda a, b: wrap(a + b), gains=(KEEPS, KEEPS)),
    FunctionEntry("sub_int", _TWO, _INT, lambda a, b: wrap(a - b), gains=(KEEPS, FLIPS)),
    FunctionEntry("mul_int", _TWO, _INT, lambda a, b: wrap(a * b), gains=(factor(1), factor(0))),
    FunctionEntry("neg_int", _ONE, _INT, lambda a: wrap(-a), gains=(FLIPS,)),
    FunctionEntry("abs_int", _ONE, _INT, lambda a: wrap(abs(a))),
    FunctionEntry(
        "idiv_int",
        _TWO,
        _INT,
        divide,
        makes_null=unless_nonzero_literal(1),
        cost=5,
        gains=(divisor, loses),
    ),
    # Not an operator of the text: buckets and truncated times have the same width below 0 as above.
    FunctionEntry(
        "floor_div",
        _TWO,
        _INT,
        divide_down,
        makes_null=unless_nonzero_literal(1),
        cost=6,
        gains=(divisor, loses),
    ),
    FunctionEntry("mod_int", _TWO, _INT, remainder, makes_null=unless_nonzero_literal(1), cost=5),
    FunctionEntry("bit_and", _TWO, _INT, lambda a, b: a & b),
    FunctionEntry("bit_or", _TWO, _INT, lambda a, b: a | b),
    FunctionEntry("bit_xor", _TWO, _INT, lambda a, b: a ^ b),
    FunctionEntry("bit_not", _ONE, _INT, lambda a: ~a, gains=(FLIPS,)),
    *(
        FunctionEntry(
            name,
            _TWO,
            _INT,
            rule,
            makes_null=unless_literal_from_zero(1),
            gains=(_shift(sign), loses),
        )
        for name, rule, sign in (("shl", shift_left, 1), ("shr", shift_right, -1))
    ),
)
INTEGERS = {entry.name: entry for entry in _FUNCTIONS}
