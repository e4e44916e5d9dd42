"""Partial and final halves of every aggregate give its plain meaning."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.queries.catalog.aggregates import AGGREGATES, AGGREGATES_TO_COME, PartialRule
from gscope.queries.catalog.types import GsqlType
from gscope.queries.plan.expressions import Column
from gscope.queries.plan.program import PartialOp

VALUES = st.lists(st.none() | st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=8)
FOLDS = {
    PartialOp.SUM: "sum",
    PartialOp.MIN: "min",
    PartialOp.MAX: "max",
    PartialOp.OR: "or_aggr",
    PartialOp.AND: "and_aggr",
    PartialOp.XOR: "xor_aggr",
}


def fold(rule: PartialRule, values: list[Any]) -> Any:
    return AGGREGATES[FOLDS.get(rule.op, "count")].evaluate(values)


def merge(rule: PartialRule, partials: list[Any]) -> Any:
    return AGGREGATES[FOLDS.get(rule.op, "sum")].evaluate(partials)


@pytest.mark.parametrize("name", [n for n, e in AGGREGATES.items() if not e.joins_key])
@settings(deadline=None)
@given(pieces=st.lists(VALUES, min_size=1, max_size=5))
def test_any_cut_of_a_group_into_partials_gives_its_aggregate(
    name: str, pieces: list[list[int | None]]
) -> None:
    entry = AGGREGATES[name]
    merged = [merge(rule, [fold(rule, piece) for piece in pieces]) for rule in entry.partials]
    assert entry.finish(merged) == entry.evaluate([value for piece in pieces for value in piece])


@pytest.mark.parametrize("name", [n for n, e in AGGREGATES.items() if e.joins_key])
@settings(deadline=None)
@given(values=VALUES)
def test_an_aggregate_whose_argument_joins_the_key_needs_only_values_and_counts(
    name: str, values: list[int | None]
) -> None:
    entry = AGGREGATES[name]
    assert entry.finish(list(Counter(values).items())) == entry.evaluate(values)


def test_dups_are_what_comes_again() -> None:
    assert AGGREGATES["count_dups"].evaluate([1, 1, 2, None, 1]) == 2
    assert AGGREGATES["count_distinct"].evaluate([1, 1, 2, None, 1]) == 2


def test_sums_of_floats_stay_high() -> None:
    assert not AGGREGATES["sum"].is_splittable([Column("x", GsqlType.FLOAT, False)])
    assert AGGREGATES["sum"].is_splittable([Column("x", GsqlType.INT, False)])


def test_no_aggregate_is_both_here_and_to_come() -> None:
    assert not AGGREGATES.keys() & AGGREGATES_TO_COME
