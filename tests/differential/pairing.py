"""Random joins of two inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.differential.growth import Grower
from tests.differential.join_styles import SQL_STYLES
from tests.differential.syntax import (
    Expression,
    Join,
    Scan,
    Type,
    column,
    literal,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from tests.differential.syntax import Field, Readable
    from tests.differential.traffic import Known

_JOINED_TYPES = (Type.INT, Type.IP, Type.STRING, Type.BOOL, Type.MAC)
_RESIDUALS = ("<", "<=", ">", ">=", "<>", "or", "is null", "is not null", "not", "not in")
"""Conditions that are neither equalities nor made of several: their meaning does not depend on
their form."""


def random_join(
    random: Random,
    values: Known,
    left: Readable,
    right: Readable,
    aliases: tuple[str, str],
) -> Join | None:
    """A join of two inputs by their times, equal or within an interval.

    None if they have none to offer.
    """
    times = _equal_times(random, left, right)
    if times is None:
        return None
    kind = random.choice(("inner", "inner", "left", "left", "right", "full", "full"))
    is_sql = kind != "inner" and random.random() < 0.6
    equalities = [times[0]]
    for _ in range(random.choice((0, 1, 1, 2))):
        pair = _equal_columns(random, left, right, equalities)
        if pair is not None:
            equalities.append(pair)
    interval = _interval(random, times[0][0].type) if random.random() < 0.35 else None
    grower = Grower.over(random, values, left.fields, right.fields)
    made = [grower.condition() for _ in range(random.choice((0, 0, 1, 2)))]
    conditions = [each for each in made if each.op in _RESIDUALS or (is_sql and _is_of_one(each))]
    where = grower.condition() if is_sql and random.random() < 0.5 else None
    if where is not None and kind == "full" and _asks_for_time(where, times[0]):
        where = None
    is_plain = interval is None and all(side.op == "column" for side in times[0])
    ordered = _ordered_sides(kind, is_sql=is_sql, is_interval=interval is not None)
    sides = tuple(
        tuple(
            replace(
                f,
                unit_ns=f.unit_ns if is_plain and column(f, number) == times[0][number] else 0,
                is_ordered=bool(f.unit_ns) or f.is_ordered,
            )
            if number in ordered
            else replace(f, unit_ns=0, is_ordered=bool(f.unit_ns) or f.is_ordered)
            for f in source.fields
        )
        for number, source in enumerate((left, right))
    )
    terms = () if is_plain else tuple((times[0][n], times[1][n]) for n in sorted(ordered))
    # A merge has the names of its first input, which may be the other side.
    names = [{f.name for f in source.fields} for source in (left, right)]
    is_unambiguous = not any(isinstance(s, Scan) for s in (left, right)) and not names[0] & names[1]
    if is_unambiguous and random.random() < 0.3:
        aliases = "", ""
    style = random.randrange(12) + (SQL_STYLES.start if is_sql else 0)
    return Join(
        *(kind, style, (left, right), aliases, tuple(equalities), tuple(conditions)),
        *((sides[0], sides[1]), interval, where, terms),
    )


def _interval(random: Random, of: Type) -> tuple[int, int]:
    """How far the right's time may be ahead: before, behind, around, or at one distance exactly."""
    least = random.choice((-5, -3, -2, -1, 0, 0, 0, 1))
    most = random.choice((least, least + 1, least + 2, least + 5, abs(least)))
    unit = random.choice((10**6, 300 * 10**6, 10**9)) if of is Type.TIMESTAMP else 1
    return least * unit, max(least, most) * unit


def _ordered_sides(kind: str, *, is_sql: bool, is_interval: bool) -> set[int]:
    """The sides whose equated time increases in the result, because it is never missing."""
    if kind == "full":
        return set() if is_interval else {0, 1}
    if kind == "inner" or (not is_sql and not is_interval):
        return {0, 1}
    return {0} if kind == "left" else {1}


def _is_of_one(e: Expression) -> bool:
    return len({part.side for part in e.walk() if part.op == "column"}) <= 1


def _asks_for_time(where: Expression, times: tuple[Expression, Expression]) -> bool:
    """Whether a condition asks if the time of a FULL JOIN is NULL, which it never is.

    That is refused.
    """
    known = [part for side in times for part in side.walk() if part.op == "column"]
    return any(
        part.op in ("is null", "is not null") and part.arguments[0] in known
        for part in where.walk()
    )


def _equal_times(
    random: Random, left: Readable, right: Readable
) -> tuple[tuple[Expression, Expression], tuple[int, int]] | None:
    """Two temporal expressions to be equated, with their units; None if there are none."""
    pairs = [
        (one, other)
        for one in left.fields
        for other in right.fields
        if one.unit_ns and other.unit_ns and one.type is other.type
    ]
    alike = [(one, other) for one, other in pairs if one.unit_ns == other.unit_ns]
    if not pairs:
        return None
    if alike and random.random() < 0.6:
        one, other = random.choice(alike)
        return (column(one, 0), column(other, 1)), (one.unit_ns, other.unit_ns)
    one, other = random.choice(pairs)
    if one.type is not Type.INT:
        return None
    length = max(one.unit_ns, other.unit_ns) * random.choice((1, 1, 2, 5))
    made = [
        _in_units(random, f, side, max(1, length // f.unit_ns))
        for side, f in enumerate((one, other))
    ]
    return (made[0], made[1]), (length, length)


def _equal_columns(
    random: Random,
    left: Readable,
    right: Readable,
    taken: Sequence[tuple[Expression, Expression]],
) -> tuple[Expression, Expression] | None:
    """Two columns that may be equal now and then, not among those of ``taken``."""
    used = [part for pair in taken for side in pair for part in side.walk()]
    pairs = [
        (column(one, 0), column(other, 1))
        for one in left.fields
        for other in right.fields
        if one.type is other.type and one.type in _JOINED_TYPES and not one.unit_ns
    ]
    pairs = [(a, b) for a, b in pairs if a not in used and b not in used]
    named = [(a, b) for a, b in pairs if a.text == b.text or a.text[-4:] == b.text[-4:]]
    if not pairs:
        return None
    one, other = random.choice(named if named and random.random() < 0.7 else pairs)
    if one.type is Type.INT and random.random() < 0.2:
        one = Expression("+", Type.INT, (one, literal("1", Type.INT, 1)))
    return one, other


def _in_units(random: Random, f: Field, side: int, count: int) -> Expression:
    """A temporal column in steps of ``count`` of its own, now and then shifted."""
    made = column(f, side)
    if count > 1:
        made = Expression("/", Type.INT, (made, literal(str(count), Type.INT, count)))
    if random.random() < 0.3:
        made = Expression(random.choice("+-"), Type.INT, (made, literal("1", Type.INT, 1)))
    return made
