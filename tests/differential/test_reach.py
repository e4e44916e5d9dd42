"""The generator of the differential test makes everything that its reference knows."""

from __future__ import annotations

from collections import Counter

from tests.differential.aggregates import AGGREGATES, ORDERED, RUNNING
from tests.differential.evaluate import Reference
from tests.differential.expressions import LAZY, STRICT
from tests.differential.harness import Scenario, random_scenario
from tests.differential.syntax import Expression, Group, Join, Query, Select

SCENARIOS = [random_scenario(seed, 12) for seed in range(60)]


def expressions(query: Query) -> list[Expression]:
    found: list[Expression | None] = []
    if isinstance(query, Select | Group):
        found += [query.where, *(column.expression for column in query.columns)]
        if isinstance(query.source, Join):
            found += query.source.conditions
    if isinstance(query, Group):
        found += [query.having, query.closing, *(key.expression for key in query.keys)]
    return [part for e in found if e is not None for part in e.walk()]


def test_every_operator_function_and_aggregate_is_asked_for() -> None:
    parts = [e for s in SCENARIOS for query in s.queries for e in expressions(query)]
    operators = {part.op for part in parts}
    assert set(STRICT) | set(LAZY) <= operators
    called = {part.text for part in parts if part.op == "aggregate"}
    assert set(AGGREGATES) | set(ORDERED) | {"count(*)", "running_count(*)"} <= called
    assert set(RUNNING) <= {text.partition("(")[0] for text in called}


def test_every_kind_of_query_is_made_and_most_have_rows() -> None:
    kinds: Counter[str] = Counter()
    filled = 0
    for scenario in SCENARIOS:
        reference = Reference(scenario.traffic.decoded()[0])
        for query in scenario.queries:
            kinds[_kind(query)] += 1
            filled += bool(reference.rows(query))
    joins = {f"join {kind}" for kind in ("inner", "left", "right", "full")}
    assert {"Select", "Group", "Merge", "distinct", "running", "whole input", *joins} <= set(kinds)
    assert min(kinds.values()) > 10
    assert filled > 0.6 * kinds.total()


def test_a_seed_is_a_scenario() -> None:
    def texts(scenario: Scenario) -> list[str]:
        return [query.text for query in scenario.queries]

    assert texts(random_scenario(7, 12)) == texts(SCENARIOS[7])
    assert random_scenario(7, 12).traffic == SCENARIOS[7].traffic


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
