"""Comparisons of bytes, and the catalog's functions, over the columns of a task."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.running.test_vectors import VALUES, columns, same

from gscope.engine.running.vectors import VECTORIZED
from gscope.engine.spark.tasks.columns import TaskRows, is_column
from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.catalog.functions import FUNCTIONS, OF_VALUES
from gscope.queries.expressions.expressions import Column, Expression, Literal, Value
from gscope.queries.expressions.types import GsqlType

STORED: dict[GsqlType, pa.DataType] = {
    GsqlType.BOOL: pa.bool_(),
    GsqlType.FLOAT: pa.float64(),
    GsqlType.STRING: pa.binary(),
    GsqlType.IP: pa.binary(16),
}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
PLAIN = [
    name
    for name in sorted(OF_VALUES - VECTORIZED)
    if not any(parameter.is_literal for parameter in FUNCTIONS[name].parameters)
]


def stored(values: list[Value], kind: GsqlType) -> pa.Array:
    if kind is GsqlType.IP:
        found: list[Any] = [None if v is None else int(v).to_bytes(16) for v in values]
        return pa.array(found, pa.binary(16))
    return pa.array(values, STORED.get(kind, pa.int64()))


def check(
    expression: Expression, table: dict[str, list[Value]], kinds: dict[str, GsqlType]
) -> None:
    assert is_column(expression)
    rows = TaskRows.of_table(pa.table({n: stored(v, kinds[n]) for n, v in table.items()}))
    got = rows.flat(expression)
    wanted = [
        evaluate(expression, lambda part, row=row: table[part.name][row])  # type: ignore[misc]
        for row in range(rows.count)
    ]
    want = stored(wanted, expression.type)
    assert got.type == want.type
    pairs = zip(got.to_pylist(), want.to_pylist(), strict=True)
    assert all(same(a, b) for a, b in pairs), (got, want)


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=15)
@given(data=st.data())
def test_a_function_is_called_for_each_row(name: str, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(VALUES)))
    kinds = [parameter.type or kind for parameter in FUNCTIONS[name].parameters]
    rows = data.draw(st.integers(0, 6))
    table = {f"x{n}": data.draw(columns(each, rows)) for n, each in enumerate(kinds)}
    arguments = [Column(f"x{n}", each, is_nullable=True) for n, each in enumerate(kinds)]
    expression = call(name, *arguments)
    if expression.type is not GsqlType.NULL:
        check(expression, table, {f"x{n}": each for n, each in enumerate(kinds)})


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("kind", [GsqlType.IP, GsqlType.STRING])
@settings(max_examples=30)
@given(data=st.data())
def test_addresses_and_texts_compare_as_bytes(
    kind: GsqlType, name: str, data: st.DataObject
) -> None:
    rows = data.draw(st.integers(1, 6))
    table = {name: data.draw(columns(kind, rows)) for name in "ab"}
    a, b = (Column(name, kind, is_nullable=True) for name in "ab")
    check(call(name, a, b), table, dict.fromkeys("ab", kind))
    constant = Literal(data.draw(st.none() | VALUES[kind]), kind)
    check(call(name, a, constant), table, dict.fromkeys("ab", kind))
    # Within a condition of numbers, and with a function of the catalog.
    check(call("and", call(name, a, b), call("is_null", b)), table, dict.fromkeys("ab", kind))


def test_zeros_of_both_signs_are_different_arguments() -> None:
    x = Column("x", GsqlType.FLOAT, is_nullable=True)
    table: dict[str, list[Value]] = {"x": [0.0, -0.0, 0.0, None, -0.0]}
    check(call("float_to_string", x), table, {"x": GsqlType.FLOAT})


def test_a_text_of_spark_is_taken_as_its_bytes() -> None:
    """Keys of windows are stored in Spark's form."""
    s = Column("s", GsqlType.STRING, is_nullable=True)
    rows = TaskRows.of_table(pa.table({"s": pa.array(["é", "", None], pa.string())}))
    is_one = call("eq", s, Literal(b"\xe9", GsqlType.STRING))
    assert rows.column(is_one).to_pylist() == [True, False, None]
    joined = call("concat", s, Literal(b"\xff", GsqlType.STRING))
    assert rows.column(joined).to_pylist() == [b"\xe9\xff", b"\xff", None]
