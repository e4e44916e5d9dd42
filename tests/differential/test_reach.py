"""The generator of the differential test makes everything that its reference knows."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest
from tests.differential import addresses
from tests.differential.aggregates import AGGREGATES, ORDERED, RUNNING
from tests.differential.evaluate import Reference
from tests.differential.expressions import LAZY, STRICT, value_of
from tests.differential.harness import (
    Outcome,
    Scenario,
    accepted_queries,
    compiled_set,
    random_scenario,
)
from tests.differential.sliding import CLOCK, WINDOW_TIME
from tests.differential.syntax import Expression, Group, Join, Query, Scan, Select, Type
from tests.support.long_form import cases

from gscope.queries.plan.row_order import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.differential.sliding import Window


@cache
def scenarios() -> list[Scenario]:
    return [random_scenario(seed, 12) for seed in range(60)]


@cache
def window_scenarios() -> list[Scenario]:
    return [random_scenario(seed, 12, has_windows=True) for seed in range(30)]


def expressions(query: Query) -> list[Expression]:
    found: list[Expression | None] = []
    if isinstance(query, Select | Group):
        found += [query.where, *(column.expression for column in query.columns)]
        if isinstance(query.source, Join):
            found += [*query.source.conditions, query.source.where]
    if isinstance(query, Group):
        found += [query.having, query.closing, *(key.expression for key in query.keys)]
    return [part for e in found if e is not None for part in e.walk()]


def test_every_operator_function_and_aggregate_is_asked_for() -> None:
    parts = [e for s in scenarios() for query in s.queries for e in expressions(query)]
    operators = {part.op for part in parts}
    assert set(STRICT) | set(LAZY) <= operators
    texts = {part.text for part in parts if part.op == "aggregate"}
    called = {text.partition(" FILTER ")[0] for text in texts}
    selecting = {text.partition("(")[0] for text in texts if " FILTER " in text}
    assert {"count", "sum", "first"} <= selecting
    assert selecting & set(RUNNING)
    assert len(selecting) > 12
    assert set(AGGREGATES) | set(ORDERED) | {"count(*)", "running_count(*)"} <= called
    assert set(RUNNING) <= {text.partition("(")[0] for text in called}


def test_every_kind_of_query_is_made_and_most_have_rows() -> None:
    kinds: Counter[str] = Counter()
    filled = 0
    for scenario in scenarios():
        reference = Reference(scenario.traffic.decoded()[0])
        for query in scenario.queries:
            kinds[_kind(query)] += 1
            filled += bool(reference.rows(query))
    joins = {f"join {kind}" for kind in ("inner", "left", "right", "full")}
    assert {"Select", "Group", "Merge", "distinct", "running", "whole input", *joins} <= set(kinds)
    assert min(kinds.values()) > 10
    assert filled > 0.6 * kinds.total()


def test_every_kind_of_join_is_made() -> None:
    queries = [query for scenario in scenarios() for query in scenario.queries]
    made = [
        (query, query.source)
        for query in queries
        if isinstance(query, Select | Group) and isinstance(query.source, Join)
    ]
    kinds = [("inner", False), *((k, s) for k in ("left", "right", "full") for s in (False, True))]
    found = {(join.kind, join.is_sql, join.interval is not None) for _, join in made}
    assert found == {(*kind, is_interval) for kind in kinds for is_interval in (False, True)}
    assert any(join.where is not None for _, join in made)
    grouped = [(join.terms, query.epoch) for query, join in made if isinstance(query, Group)]
    assert any(terms and epoch is not None for terms, epoch in grouped)
    assert any(epoch is None for _, epoch in grouped)
    intervals = [join.interval for _, join in made if join.interval is not None]
    assert {least < 0 < most for least, most in intervals} == {False, True}
    assert any(most < 0 for _, most in intervals)


def test_every_kind_of_window_is_made_and_most_have_rows() -> None:
    kinds: Counter[str] = Counter()
    filled = 0
    classes: Counter[object] = Counter()
    for number, scenario in enumerate(window_scenarios()):
        reference = Reference(scenario.traffic.decoded()[0])
        for query in scenario.queries:
            if isinstance(query, Group) and query.window is not None:
                kinds.update(_window_kinds(query, query.window))
                classes[number, query.source.name, query.where, query.keys] += 1
                filled += bool(reference.rows(query))
    assert min(kinds.values()) > 1
    assert set(kinds) == {
        *("slices", "hopping", "tumbling", "overlapping", "coprime", "below a second"),
        *("packets", "a query", "its times", "an epoch", "of windows"),
        *("whole slices", "a window's time"),
        *("ON", "behind the alias", "before the alias", "distinct", "HAVING", "keys", "no keys"),
    }
    assert sum(count > 1 for count in classes.values()) > 10
    assert filled > 0.6 * sum(classes.values())


def _window_kinds(query: Group, window: Window) -> Iterator[str]:
    first, last = window.lengths[0], window.lengths[-1]
    if window.is_slices:
        yield "slices"
    else:
        yield "tumbling" if first == last else "hopping" if first < last else "overlapping"
        if first > last and first % last:
            yield "coprime"
    if any(
        length * window.scale % 10**9
        for length in window.lengths
        if window.scale > 1 or window.on == CLOCK
    ):
        yield "below a second"
    if isinstance(query.source, Scan):
        yield "packets"
    else:
        yield "a query"
        yield "its times" if window.on.kind else "an epoch"
        if isinstance(query.source, Group) and query.source.window is not None:
            yield "of windows"
            if window.on.name == WINDOW_TIME:
                yield "whole slices" if query.source.window.is_slices else "a window's time"
    if " ON " in window.text:
        yield "ON"
    if query.alias:
        yield "before the alias" if window.is_before_alias else "behind the alias"
    if query.is_distinct:
        yield "distinct"
    if query.having is not None:
        yield "HAVING"
    yield "keys" if query.keys else "no keys"


@pytest.mark.slow
@pytest.mark.parametrize(
    "span", cases([(0, 20)], long=[(20, 40), (40, 60)]), ids=lambda span: f"{span[0]}-{span[1]}"
)
def test_the_generator_knows_which_columns_are_temporal(span: tuple[int, int]) -> None:
    """It groups and joins by columns with a unit; whether others are temporal must be left open."""
    first, last = span
    for scenario in [*scenarios()[first:last], *window_scenarios()[first // 2 : last // 2]]:
        outcome = Outcome()
        queries = accepted_queries(scenario, outcome)
        assert not outcome.disagreements
        program = compiled_set(queries, scenario.traffic).program
        delivered = {name for name, _ in program.results}
        for query in queries:
            if query.name not in delivered:
                continue
            schema = visible(program.schema(query.name))
            temporal = {column.name for column in schema.temporal}
            known = {each.name for each in query.fields if each.unit_ns}
            perhaps = {each.name for each in query.fields if each.is_ordered}
            assert known <= temporal <= known | perhaps, query.text


def test_integers_add_up_beyond_64_bits_and_addresses_are_mapped() -> None:
    assert any(abs(total) >= 2**63 for total in _sums())
    rows = [row for s in scenarios() for rows in s.traffic.decoded()[0].values() for row in rows]
    assert any(
        addresses.shown(row["srcIP"]).startswith("::ffff:") for row in rows if "srcIP" in row
    )


def _sums() -> Iterator[int]:
    """Exact sums of the groups over packets whose sum or average of integers is asked for."""
    for scenario in scenarios()[:20]:
        reference = Reference(scenario.traffic.decoded()[0])
        for query in scenario.queries:
            if not isinstance(query, Group) or not isinstance(query.source, Scan):
                continue
            added = [
                part.arguments[0]
                for column in query.columns
                for part in column.expression.walk()
                if part.op == "aggregate" and part.text in ("sum({0})", "avg({0})")
            ]
            for argument in added:
                values = [value_of(argument, (row,)) for row in reference.rows(query.source)]
                if argument.type is Type.INT:
                    yield sum(value for value in values if value is not None)


def test_a_seed_is_a_scenario() -> None:
    def texts(scenario: Scenario) -> list[str]:
        return [query.text for query in scenario.queries]

    assert texts(random_scenario(7, 12)) == texts(scenarios()[7])
    assert random_scenario(7, 12).traffic == scenarios()[7].traffic


def _kind(query: Query) -> str:
    match query:
        case Select(is_distinct=True):
            return "distinct"
        case Group(closing=Expression()):
            return "running"
        case Group(epoch=None):
            return "whole input"
        case Select(source=Join(kind=kind)) | Group(source=Join(kind=kind)):
            return f"join {kind}"
    return type(query).__name__
