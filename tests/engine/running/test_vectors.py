"""Columns are computed as the catalog computes each row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.engine.running.vectors import Vector, compute, from_arrow, from_list, to_arrow
from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.expressions.expressions import Column, Expression, Literal, PacketField, Value
from gscope.queries.expressions.types import GsqlType

BIG = (1 << 63) - 1
INTEGERS = st.integers(-BIG - 1, BIG) | st.sampled_from([0, 1, -1, 7, 63, 64, BIG, -BIG - 1])
VALUES: dict[GsqlType, st.SearchStrategy[Any]] = {
    GsqlType.BOOL: st.booleans(),
    GsqlType.INT: INTEGERS,
    GsqlType.FLOAT: st.floats() | st.sampled_from([0.0, -0.0, math.nan, math.inf]),
    GsqlType.STRING: st.binary(max_size=4),
    GsqlType.IP: st.integers(0, (1 << 128) - 1),
    GsqlType.MAC: st.integers(0, (1 << 48) - 1),
    GsqlType.TIMESTAMP: INTEGERS,
    GsqlType.INTERVAL: INTEGERS,
}


def columns(kind: GsqlType, rows: int) -> st.SearchStrategy[list[Value]]:
    return st.lists(st.none() | VALUES[kind], min_size=rows, max_size=rows)


def same(left: Value, right: Value) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        both_nan = math.isnan(left) and math.isnan(right)
        return both_nan or (left == right and math.copysign(1, left) == math.copysign(1, right))
    return left == right and type(left) is type(right)


PLAIN = [
    name
    for name, entry in FUNCTIONS.items()
    if entry.is_foldable and not any(parameter.is_literal for parameter in entry.parameters)
]


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=15)
@given(data=st.data())
def test_a_function_over_columns_is_the_function_over_each_row(
    name: str, data: st.DataObject
) -> None:
    entry = FUNCTIONS[name]
    kind = data.draw(st.sampled_from(list(VALUES)))
    rows = data.draw(st.integers(0, 5))
    kinds = [parameter.type or kind for parameter in entry.parameters]
    table = {f"x{n}": data.draw(columns(each, rows)) for n, each in enumerate(kinds)}
    arguments = [Column(f"x{n}", each, is_nullable=True) for n, each in enumerate(kinds)]
    check(call(name, *arguments), table, rows)


def check(expression: Expression, table: dict[str, list[Value]], rows: int) -> None:
    kinds = {c.name: c.type for c in _columns(expression)}
    vectors = {name: from_list(values, kinds[name]) for name, values in table.items()}
    got = compute(expression, vectors.__getitem__, rows).to_list()
    for row in range(rows):

        def leaf(part: Column | PacketField, row: int = row) -> Value:
            return table[part.name][row]

        want = evaluate(expression, leaf)
        assert same(want, got[row]), (want, got[row])


def _columns(expression: Expression) -> list[Column]:
    if isinstance(expression, Column):
        return [expression]
    return [c for a in getattr(expression, "arguments", ()) for c in _columns(a)]


def test_a_condition_mixes_columns_and_constants() -> None:
    x = Column("x", GsqlType.INT, is_nullable=True)
    is_one = call("eq", x, Literal(1, GsqlType.INT))
    expression = call("or", is_one, call("is_null", x))
    check(expression, {"x": [1, 2, None]}, 3)
    made = compute(expression, lambda _: from_list([1, 2, None], GsqlType.INT), 3)
    assert made.is_true().tolist() == [True, False, True]


@pytest.mark.parametrize("kind", list(VALUES))
@settings(max_examples=15)
@given(data=st.data())
def test_arrow_and_back_changes_nothing(kind: GsqlType, data: st.DataObject) -> None:
    values = data.draw(columns(kind, data.draw(st.integers(0, 4))))
    again = from_arrow(to_arrow(from_list(values, kind), kind), kind).to_list()
    assert all(same(a, b) for a, b in zip(values, again, strict=True))


def test_a_column_of_chunks_is_one_column() -> None:
    chunks = pa.chunked_array([[1, None], [3]], pa.int64())
    made = from_arrow(chunks, GsqlType.INT)
    assert isinstance(made, Vector)
    assert made.to_list() == [1, None, 3]
    assert made.take(np.array([2, 1])).to_list() == [3, None]
