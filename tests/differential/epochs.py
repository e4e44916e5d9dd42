"""Random epochs: expressions that increase with a temporal column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.differential.growth import integer
from tests.differential.syntax import Expression, Field, Type, column, literal

if TYPE_CHECKING:
    from random import Random

_INT, _STRING = Type.INT, Type.STRING
_TIMESTAMP, _INTERVAL = Type.TIMESTAMP, Type.INTERVAL
_SECOND_NS = 10**9
_UNITS = {"second": _SECOND_NS, "minute": 60 * _SECOND_NS}


def temporal(random: Random, field: Field, side: int = 0) -> tuple[Expression, int]:
    """An expression that increases with ``field`` in steps of some seconds, and the unit of it."""
    base, unit = column(field, side), field.unit_ns
    length = random.choice((1, 2, 5, 10, 30)) * _SECOND_NS
    if field.type is _TIMESTAMP:
        if random.random() < 0.2:
            base = Expression(
                random.choice("+-"), _TIMESTAMP, (base, _interval(7 * _SECOND_NS // 2))
            )
        if random.random() < 0.2:
            return _rounded_down(random, base, length), 1
        return Expression("/", _INT, (base, _interval(length))), length
    if random.random() < 0.2:
        base = Expression(random.choice("+-"), _INT, (base, integer(random.randrange(100))))
    count = max(1, length // unit)
    made = base
    if count > 1:
        made = Expression(random.choice(("/", "/", "div")), _INT, (base, integer(count)))
        if random.random() < 0.15:
            return Expression(
                "-", _INT, (base, Expression("%", _INT, (base, integer(count))))
            ), unit
    elif random.random() < 0.3:
        count = 2 ** random.randrange(3)
        made = Expression(">>", _INT, (base, integer(count.bit_length() - 1)))
    if random.random() < 0.15:
        return Expression("*", _INT, (made, integer(2))), max(1, unit * count // 2)
    if random.random() < 0.1:
        return Expression("negative", _INT, (Expression("negative", _INT, (made,)),)), unit * count
    return made, unit * count


def _rounded_down(random: Random, base: Expression, length_ns: int) -> Expression:
    """The beginning of the bucket that a time is in."""
    if random.random() < 0.5:
        unit = random.choice(list(_UNITS))
        text = literal(f"'{unit}'", _STRING, _UNITS[unit])
        return Expression("date_trunc", _TIMESTAMP, (text, base))
    text = literal(f"'{length_ns // _SECOND_NS} sec'", _STRING, length_ns)
    return Expression("time_bucket", _TIMESTAMP, (text, base))


def falls(epoch: Expression) -> bool:
    """Whether an epoch decreases with time: ``temporal`` with a minus sign before it."""
    return epoch.op == "negative" and not falls(epoch.arguments[0])


def moves_in_steps(text: str) -> bool:
    """Whether a query may have an epoch that skips values.

    No other query's groups live across it.
    """
    return any(word in text for word in (" * ", " % ", "date_trunc", "time_bucket"))


def _interval(length_ns: int) -> Expression:
    return literal(f"INTERVAL '{length_ns // 10**6} ms'", _INTERVAL, length_ns)


def in_units(field: Field, length_ns: int) -> Expression:
    """A temporal column in steps of about ``length_ns``."""
    base = column(field)
    if field.type is _TIMESTAMP:
        return Expression("/", _INT, (base, _interval(length_ns)))
    count = max(1, length_ns // field.unit_ns)
    return base if count == 1 else Expression("/", _INT, (base, integer(count)))


def in_steps(random: Random, epoch: Expression) -> tuple[Expression, int]:
    """An epoch, now and then one that skips values, and the difference of consecutive ones."""
    if random.random() < 0.6:
        return epoch, 1
    step = random.choice((2, 3, 20))
    made = Expression("*", _INT, (epoch, integer(step)))
    if random.random() < 0.5:
        made = Expression("+", _INT, (made, integer(random.choice((1, 5, -7)))))
    return made, step
