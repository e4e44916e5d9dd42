"""What the schema of a join says of its rows is true of them, whatever the inputs hold."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.queries.analysis.plan_rows import Row, rows_of

from gscope.queries.analysis.analyze import analyze
from gscope.queries.expressions.types import Direction
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.logical import Project

INPUTS = """
Query a: SELECT t, k, count(*) as x FROM IP GROUP BY time as t, vlan as k;
Query b: SELECT t, k, count(*) as y FROM IP GROUP BY time as t, vlan as k;
"""
KINDS = ["INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
TERMS = ["{}.t", "{}.t/2", "{}.t/3 + 1", "{}.t - 2", "3 + {}.t", "{}.t*2", "{}.t >> 1"]
RELATIONS = [
    "{} = {}",
    "{1} BETWEEN {0} AND {0} + 3",
    "abs({1} - {0}) < 2",
    "{0} - 2.5 < {1} AND {0} >= {1} - 1",
]
REST = ["a.k = b.k", "a.k + 1 = b.k", "a.x < b.y", "a.x = b.y", "a.x > 1", "a.k = b.y"]
ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.none() | st.integers(0, 2), st.integers(0, 3)), max_size=8
)


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    terms=st.tuples(st.sampled_from(TERMS), st.sampled_from(TERMS)),
    relation=st.sampled_from(RELATIONS),
    rest=st.lists(st.sampled_from(REST), max_size=3, unique=True),
    left=ROWS,
    right=ROWS,
)
def test_orderings_bands_and_nullability_hold(
    kind: str,
    terms: tuple[str, str],
    relation: str,
    rest: list[str],
    left: list[tuple[int, int | None, int]],
    right: list[tuple[int, int | None, int]],
) -> None:
    one, other = f"({terms[0].format('a')})", f"({terms[1].format('b')})"
    condition = " AND ".join([relation.format(one, other), *rest])
    text = f"SELECT a.t, b.t, a.k, b.k, x, y, a.t/2 FROM a {kind} b ON {condition} WHERE b.y < 3"
    plan = analyze([parse(f"{INPUTS} Query q: {text}")], ("m",), {}, {})
    project = plan.queries[-1].root
    assert isinstance(project, Project)
    streams: dict[str, list[Row]] = {
        "a": [{"t": t, "k": k, "x": x} for t, k, x in left],
        "b": [{"t": t, "k": k, "y": y} for t, k, y in right],
    }
    made = rows_of(project, streams)
    for column in project.schema.columns:
        values = [row[column.name] for row in made]
        assert column.is_nullable or None not in values, column
        if column.ordering.is_temporal:
            assert column.ordering.direction is Direction.INCREASING
            numbers = [int(v) for v in values if isinstance(v, int)]
            for place, number in enumerate(numbers):
                assert max(numbers[: place + 1]) - number <= column.ordering.band, column
