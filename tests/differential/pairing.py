"""Random joins of two inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.differential.growth import Grower
from tests.differential.syntax import Expression, Join, Scan, Type, column, literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from tests.differential.syntax import Field, Readable

_JOINED_TYPES = (Type.INT, Type.IP, Type.STRING, Type.BOOL, Type.MAC)
_RESIDUALS = ("<", "<=", ">", ">=", "<>", "or", "is null", "is not null", "not", "not in")
"""Conditions that are neither equalities nor made of several: their meaning does not depend on their form."""


def random_join(
    random: Random, left: Readable, right: Readable, aliases: tuple[str, str]
) -> Join | None:
    """A join of two inputs by their times, equal or within an interval; None if they have none to offer."""
    times = _equal_times(random, left, right)
    if times is None:
        return None
    kind = random.choice(("inner", "inner", "left", "right", "full", "full"))
    equalities = [times]
    for _ in range(random.choice((0, 1, 1, 2))):
        pair = _equal_columns(random, left, right, equalities)
        if pair is not None:
            equalities.append(pair)
    grower = Grower.over(random, left.fields, right.fields)
    conditions = [
        made
        for _ in range(random.choice((0, 0, 1, 2)))
        if (made := grower.condition()).op in _RESIDUALS
    ]
    interval = None
    if times[0].type is Type.INT and random.random() < 0.3:
        least = random.choice((-3, -1, 0, 0, 0, 1))
        interval = least, least + random.choice((0, 1, 2, 5))
    is_plain = interval is None and all(side.op == "column" for side in times)
    sides = tuple(
        tuple(
            replace(
                f,
                unit_ns=f.unit_ns if is_plain and column(f, number) == times[number] else 0,
                is_ordered=bool(f.unit_ns) or f.is_ordered,
            )
            for f in source.fields
        )
        for number, source in enumerate((left, right))
    )
    # A merge has the names of its first input, which may be the other side.
    names = [{f.name for f in source.fields} for source in (left, right)]
    are_told_apart = not any(isinstance(s, Scan) for s in (left, right)) and not names[0] & names[1]
    if are_told_apart and random.random() < 0.3:
        aliases = "", ""
    style = random.randrange(4)
    return Join(
        *(kind, style, (left, right), aliases, tuple(equalities), tuple(conditions)),
        (sides[0], sides[1]),
        interval,
    )


def _equal_times(
    random: Random, left: Readable, right: Readable
) -> tuple[Expression, Expression] | None:
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
        return column(one, 0), column(other, 1)
    one, other = random.choice(pairs)
    if one.type is not Type.INT:
        return None
    length = max(one.unit_ns, other.unit_ns) * random.choice((1, 1, 2, 5))
    made = [
        _in_units(random, f, side, max(1, length // f.unit_ns))
        for side, f in enumerate((one, other))
    ]
    return made[0], made[1]


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
