"""What the schema of a join says of its rows is true of them, whatever the inputs hold."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.queries.analysis.analyze import analyze
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.catalog.types import Direction
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.expressions import Column, Expression, PacketField, Value
from gscope.queries.plan.logical import Join, Project

if TYPE_CHECKING:
    from collections.abc import Sequence

INPUTS = """
Query a: SELECT t, k, count(*) as x FROM IP GROUP BY time as t, vlan as k;
Query b: SELECT t, k, count(*) as y FROM IP GROUP BY time as t, vlan as k;
"""
Row = dict[str, Value]
KINDS = ["INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
TERMS = ["{}.t", "{}.t/2", "{}.t/3 + 1", "{}.t - 2", "3 + {}.t", "{}.t*2", "{}.t >> 1"]
REST = ["a.k = b.k", "a.k + 1 = b.k", "a.x < b.y", "a.x = b.y", "a.x > 1", "a.k = b.y"]
ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.none() | st.integers(0, 2), st.integers(0, 3)), max_size=8
)


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    terms=st.tuples(st.sampled_from(TERMS), st.sampled_from(TERMS)),
    rest=st.lists(st.sampled_from(REST), max_size=3, unique=True),
    left=ROWS,
    right=ROWS,
)
def test_orderings_bands_and_nullability_hold(
    kind: str,
    terms: tuple[str, str],
    rest: list[str],
    left: list[tuple[int, int | None, int]],
    right: list[tuple[int, int | None, int]],
) -> None:
    condition = " AND ".join([f"{terms[0].format('a')} = {terms[1].format('b')}", *rest])
    text = f"SELECT a.t, b.t, a.k, b.k, x, y, a.t/2 FROM a {kind} b ON {condition} WHERE b.y < 3"
    plan = analyze([parse(f"{INPUTS} Query q: {text}")], ("m",), {}, {})
    project = plan.queries[-1].root
    assert isinstance(project, Project)
    join = project.input
    assert isinstance(join, Join)
    rows = answer(
        join,
        [{"t": t, "k": k, "x": x} for t, k, x in left if x > 1 or "a.x > 1" not in rest],
        [{"t": t, "k": k, "y": y} for t, k, y in right if y < 3],
    )
    made = [{c.name: value(c.expression, row, {}) for c in project.columns} for row in rows]
    for column in project.schema.columns:
        values = [row[column.name] for row in made]
        assert column.is_nullable or None not in values, column
        if column.ordering.is_temporal:
            assert column.ordering.direction is Direction.INCREASING
            numbers = [int(v) for v in values if isinstance(v, int)]
            for place, number in enumerate(numbers):
                assert max(numbers[: place + 1]) - number <= column.ordering.band, column


def answer(join: Join, left: Sequence[Row], right: Sequence[Row]) -> list[Row]:
    """The rows of a join as they leave it: epoch by epoch, within one in the worst order."""
    by_epoch: dict[int, list[Row]] = defaultdict(list)
    matched = set()
    for one in left:
        has_match = False
        for number, other in enumerate(right):
            if is_pair(join, one, other):
                has_match = True
                matched.add(number)
                by_epoch[epoch(join.epochs[0], one, {})].append(output(join, one, other))
        if not has_match and join.kind in (JoinKind.LEFT_OUTER, JoinKind.OUTER):
            by_epoch[epoch(join.epochs[0], one, {})].append(output(join, one, {}))
    if join.kind in (JoinKind.RIGHT_OUTER, JoinKind.OUTER):
        for number, other in enumerate(right):
            if number not in matched:
                by_epoch[epoch(join.epochs[1], {}, other)].append(output(join, {}, other))
    return [row for _, rows in sorted(by_epoch.items()) for row in sorted(rows, key=descending)]


def descending(row: Row) -> list[int]:
    return [-v if isinstance(v, int) else 0 for v in row.values()]


def is_pair(join: Join, left: Row, right: Row) -> bool:
    for one, other in (join.epochs, *join.keys):
        first, second = value(one, left, right), value(other, left, right)
        if first is None or first != second:
            return False
    return join.residual is None or value(join.residual, left, right) is True


def epoch(expression: Expression, left: Row, right: Row) -> int:
    found = value(expression, left, right)
    assert isinstance(found, int)
    return found


def output(join: Join, left: Row, right: Row) -> Row:
    return {c.name: value(c.expression, left, right) for c in join.columns}


def value(expression: Expression, left: Row, right: Row) -> Value:
    def leaf(part: PacketField | Column) -> Value:
        assert isinstance(part, Column)
        return (left, right)[part.input].get(part.name)

    return evaluate(expression, leaf)
