"""FILTER_JOIN keeps the tuples that have a match shortly before, each once."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.queries.analysis.plan_rows import rows_of

from gscope.errors import GsqlError, ResolveError, TemporalError, UnsupportedError
from gscope.queries.analysis.analyze import analyze
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.logical import Filter, GroupBy, Node

INPUTS = """
Query a: SELECT t, k, count(*) as x FROM IP GROUP BY time as t, vlan as k;
Query b: SELECT t, k, count(*) as y FROM IP GROUP BY time as t, vlan as k;
"""
ROWS = st.lists(
    st.tuples(st.integers(-12, 12), st.none() | st.integers(0, 1), st.integers(0, 2)), max_size=9
)


def root(text: str) -> Node:
    return analyze([parse(f"{INPUTS} Query q: {text}")], ("m", "n"), {}, {}).queries[-1].root


@settings(max_examples=300, deadline=None)
@example(span=5, left=[(4, None, 1)], right=[(-4, None, 1)], has_key=False)
@given(span=st.integers(0, 5), left=ROWS, right=ROWS, has_key=st.booleans())
def test_a_tuple_is_kept_if_the_other_input_had_one_like_it_within_the_span(
    span: int,
    left: list[tuple[int, int | None, int]],
    right: list[tuple[int, int | None, int]],
    has_key: bool,
) -> None:
    condition = "a.k = b.k and y > 0" if has_key else "y > 0"
    node = root(f"SELECT a.t, a.k, x FILTER_JOIN(t, {span}) FROM a, b WHERE {condition}")
    made = rows_of(
        node,
        {
            "a": [{"t": t, "k": k, "x": x} for t, k, x in left],
            "b": [{"t": t, "k": k, "y": y} for t, k, y in right],
        },
    )
    expected = [
        (t, k, x)
        for t, k, x in left
        if any(
            y > 0 and t - span <= seen <= t and (not has_key or (k is not None and k == key))
            for seen, key, y in right
        )
    ]
    assert sorted(map(repr, (tuple(row.values()) for row in made))) == sorted(map(repr, expected))


def test_the_other_input_is_reduced_to_the_ends_of_its_buckets() -> None:
    node = root("SELECT t FILTER_JOIN(t, 60) FROM a, b WHERE a.k = b.k").input  # type: ignore[union-attr]
    assert isinstance(node, Filter)
    seen = node.input.inputs[1]  # type: ignore[union-attr]
    assert isinstance(seen, GroupBy)
    assert [call.function for call in seen.aggregates] == ["min", "max"]
    assert node.schema["t"].ordering.is_temporal


def test_a_star_and_bare_names_are_of_the_first_input() -> None:
    node = root("SELECT *, t + 1 as u FILTER_JOIN(t, 2) FROM a, b WHERE a.k = b.k")
    assert node.schema.names == ("t", "k", "x", "u")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT y FILTER_JOIN(t, 2) FROM a, b WHERE a.k = b.k", ResolveError, "whether b has"),
        ("SELECT t FILTER_JOIN(z, 2) FROM a, b WHERE a.k = b.k", ResolveError, "no column z"),
        ("SELECT t FILTER_JOIN(k, 2) FROM a, b WHERE a.k = b.k", TemporalError, "along t"),
        ("SELECT t FILTER_JOIN(t, '2 sec') FROM a, b WHERE a.k = b.k", GsqlError, "whole number"),
        ("SELECT t FILTER_JOIN(t, 2) FROM a, b WHERE a.k < b.k", UnsupportedError, "equalities"),
        ("SELECT a.t FILTER_JOIN(t, 2) FROM a, b, b c WHERE a.k = b.k", UnsupportedError, "two"),
    ],
)
def test_wrong_filter_joins_are_refused_with_a_remedy(
    text: str, error: type[GsqlError], message: str
) -> None:
    with pytest.raises(error) as caught:
        root(text)
    assert message in caught.value.report()
    assert caught.value.position is not None
    assert caught.value.remedy
