"""What a join of the differential test means: nested loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.differential.expressions import FILLED, holds, order, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.differential.syntax import Expression, Join

Row = dict[str, Any]
Pair = tuple[Row, Row]


def joined(join: Join, left: Sequence[Row], right: Sequence[Row]) -> Iterator[Pair]:
    """Pairs; a tuple without a match comes once, with a side that has only what it must equal.

    In Gigascope's spelling a condition on one side chooses its tuples before the join. In SQL's it
    only says what matches, and ``where`` chooses from the result.
    """
    for pair in _pairs(join, left, right):
        if join.where is None or holds(join.where, pair):
            yield pair


def _pairs(join: Join, left: Sequence[Row], right: Sequence[Row]) -> Iterator[Pair]:
    conditions, lefts, rights = list(join.conditions), list(left), list(right)
    if not join.is_sql:
        conditions = [c for c in conditions if _sides(c) == {0, 1}]
        lefts = [row for row in left if _takes_part(join, 0, row)]
        rights = [row for row in right if _takes_part(join, 1, row)]
    keeps_left, keeps_right = join.outer_sides
    is_matched = [False] * len(rights)
    for one in lefts:
        found = False
        for number, other in enumerate(rights):
            if _are_equal(join, (one, other)) and all(holds(c, (one, other)) for c in conditions):
                found = is_matched[number] = True
                yield one, other
        if not found and keeps_left:
            yield one, _known(join, 1, (one, {}))
    if keeps_right:
        for other, matched in zip(rights, is_matched, strict=True):
            if not matched:
                yield _known(join, 0, ({}, other)), other


def _sides(e: Expression) -> set[int]:
    return {part.side for part in e.walk() if part.op == "column"}


def _takes_part(join: Join, side: int, row: Row) -> bool:
    """Whether a tuple satisfies what is asked of its side alone, or of none."""
    rows = (row, {}) if side == 0 else ({}, row)
    return all(holds(c, rows) for c in join.conditions if _sides(c) <= {side})


def _are_equal(join: Join, pair: Pair) -> bool:
    for number, (left, right) in enumerate(join.equalities):
        one, other = value_of(left, pair), value_of(right, pair)
        if one is None or other is None:
            return False
        if join.interval is not None and not number:
            least, most = join.interval
            if not least <= other - one <= most:
                return False
        elif order(one) != order(other):
            return False
    return True


def _known(join: Join, side: int, pair: Pair) -> Row:
    """What the columns of a missing side must be, given the side that is there."""
    known: Row = {}
    first = 0 if join.interval is None else 1
    # In SQL a missing side is NULL; the equated time of a FULL JOIN is there all the same.
    end = len(join.equalities) if not join.is_sql else int(join.kind == "full")
    for number, equality in enumerate(join.equalities[first:end], start=first):
        own, other = equality if side == 0 else equality[::-1]
        value = value_of(other, pair)
        if number == 0 and own.op != "column":
            known[FILLED] = {own: value}
        if own.op in "+-" and own.arguments[1].op == "literal" and value is not None:
            offset = own.arguments[1].value
            assert isinstance(offset, int)
            value, own = value - offset if own.op == "+" else value + offset, own.arguments[0]
        if own.op == "column":
            known.setdefault(own.text, value)
    return known
