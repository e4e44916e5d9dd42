"""Partial and final halves of every aggregate give its plain meaning."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.aggregates import (
    AGGREGATES,
    AggregateEntry,
    PartialRule,
)
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.expressions.expressions import Column, Expression, Literal, PacketField
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

Row = tuple[Any, int]
"""A value and a time."""

LARGE = st.integers(-(1 << 63), (1 << 63) - 1)
SMALL = st.integers(-3, 3) | st.integers(-(1 << 32) + 1, (1 << 32) - 1)
FOLDS = {
    PartialOp.SUM: "sum",
    PartialOp.MIN: "min",
    PartialOp.MAX: "max",
    PartialOp.OR: "or_aggr",
    PartialOp.AND: "and_aggr",
    PartialOp.XOR: "xor_aggr",
}
CONSTANTS: dict[str, tuple[Literal, ...]] = {
    "quantile": (Literal(0.3, GsqlType.FLOAT),),
    "approx_top_k": (Literal(2, GsqlType.INT),),
}
PARTIAL = [name for name, entry in AGGREGATES.items() if entry.partials]


def rows_of(values: st.SearchStrategy[int]) -> st.SearchStrategy[list[Row]]:
    return st.lists(st.tuples(st.none() | values, st.integers(0, 4)), min_size=1, max_size=9)


def arguments_of(entry: AggregateEntry) -> tuple[Expression, ...]:
    """The arguments of a call over a packet field, as the analysis makes them."""
    is_truth = entry.argument_types == {GsqlType.BOOL}
    value = PacketField("len", GsqlType.BOOL if is_truth else GsqlType.INT, True)
    made: tuple[Expression, ...] = (value, *CONSTANTS.get(entry.name, ()))
    if entry.is_ordered:
        made += (PacketField("time_ns", GsqlType.INT, False),)
    if entry.knows_type:
        made += (Literal(b"INT", GsqlType.STRING),)
    return made


def value_of(expression: Expression | None, row: Row) -> Any:
    if expression is None:
        return True
    values = {"len": row[0], "time_ns": row[1]}
    return evaluate(expression, lambda leaf: values[leaf.name])


def fold(rule: PartialRule, arguments: Sequence[Expression], rows: Sequence[Row]) -> Any:
    values = [value_of(rule.argument(arguments), row) for row in rows]
    return AGGREGATES[FOLDS.get(rule.op, "count")].evaluate(values)


def merge(rule: PartialRule, partials: list[Any]) -> Any:
    return AGGREGATES[FOLDS.get(rule.op, "sum")].evaluate(partials)


def plainly(entry: AggregateEntry, rows: Sequence[Row]) -> Any:
    """The meaning."""
    constants = [a.value for a in arguments_of(entry) if isinstance(a, Literal)]
    values = list(rows) if entry.is_ordered else [value for value, _ in rows]
    return entry.evaluate(values, *constants)


def in_pieces(entry: AggregateEntry, pieces: Sequence[Sequence[Row]]) -> Any:
    """The same from the partial tuples of each piece."""
    arguments = arguments_of(entry)
    constants = [a.value for a in arguments if isinstance(a, Literal)]
    if not entry.joins_key:
        merged = [
            merge(rule, [fold(rule, arguments, piece) for piece in pieces])
            for rule in entry.partials
        ]
        return entry.finish(merged, *constants)
    sent = []
    for piece in pieces:
        groups: dict[Any, list[Row]] = defaultdict(list)
        for row in piece:
            groups[value_of(entry.joined(arguments), row)].append(row)
        for joined, members in groups.items():
            sent.append((joined, *(fold(rule, arguments, members) for rule in entry.partials)))
    return entry.finish(sent, *constants)


@pytest.mark.parametrize("name", PARTIAL)
@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_any_cut_of_a_group_into_partials_gives_its_aggregate(
    name: str, data: st.DataObject
) -> None:
    entry = AGGREGATES[name]
    values: st.SearchStrategy[int] = SMALL if name.startswith(("var", "stddev")) else LARGE | SMALL
    if entry.argument_types == {GsqlType.BOOL}:
        values = st.booleans()
    pieces = data.draw(st.lists(rows_of(values), min_size=1, max_size=5))
    assert in_pieces(entry, pieces) == plainly(entry, [row for piece in pieces for row in piece])


@settings(deadline=None, max_examples=50)
@given(pieces=st.lists(rows_of(LARGE), min_size=1, max_size=5))
def test_an_average_of_large_numbers_lies_among_them(pieces: list[list[Row]]) -> None:
    values = [value for piece in pieces for value, _ in piece if value is not None]
    average = in_pieces(AGGREGATES["avg"], pieces)
    if not values:
        assert average is None
        return
    assert average == float(sum(values)) / len(values)
    slack = 1e-15 * max(map(abs, values))
    assert min(values) - slack <= average <= max(values) + slack


def test_an_average_of_small_fields_needs_one_sum() -> None:
    entry = AGGREGATES["avg"]
    small, large = (PacketField(name, GsqlType.INT, False) for name in ("len", "time_ns"))
    assert entry.rules([small]) == entry.narrow
    assert entry.rules([large]) == entry.partials
    assert entry.finish([12, 5]) == entry.finish([12, 0, 5]) == 2.4


@pytest.mark.parametrize("name", AGGREGATES)
@settings(deadline=None, max_examples=30)
@given(rows=rows_of(st.integers(-2, 2)), chance=st.randoms(use_true_random=False))
def test_no_aggregate_depends_on_the_order_in_which_tuples_come(
    name: str, rows: list[Row], chance: random.Random
) -> None:
    entry = AGGREGATES[name]
    if entry.argument_types == {GsqlType.BOOL}:
        rows = [(None if value is None else value > 0, time) for value, time in rows]
    shuffled = chance.sample(rows, len(rows))
    assert plainly(entry, shuffled) == plainly(entry, rows)


@pytest.mark.parametrize("name", AGGREGATES)
def test_without_a_value_an_aggregate_is_null_or_never_null(name: str) -> None:
    entry = AGGREGATES[name]
    value = plainly(entry, [(None, 1), (None, 2)])
    assert value == 0 if entry.is_never_null else value is None


@pytest.mark.parametrize("name", AGGREGATES)
def test_every_aggregate_says_what_it_is(name: str) -> None:
    doc = AGGREGATES[name].doc
    assert doc.endswith((".", "exact")) or ":" in doc
    assert AGGREGATES[name].error or name != "approx_count_distinct"


def test_dups_are_what_comes_again() -> None:
    assert AGGREGATES["count_dups"].evaluate([1, 1, 2, None, 1]) == 2
    assert AGGREGATES["count_distinct"].evaluate([1, 1, 2, None, 1]) == 2


def test_sums_of_floats_stay_high() -> None:
    assert not AGGREGATES["sum"].is_splittable([Column("x", GsqlType.FLOAT, False)])
    assert AGGREGATES["sum"].is_splittable([Column("x", GsqlType.INT, False)])


def test_squares_of_long_integers_stay_high() -> None:
    long, short = (PacketField(name, GsqlType.INT, False) for name in ("time_ns", "len"))
    assert not AGGREGATES["var"].is_splittable([long])
    assert AGGREGATES["var"].is_splittable([short])
