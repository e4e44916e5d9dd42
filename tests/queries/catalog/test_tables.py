"""Tables of constants hold exactly their values.

A membership test says so as an IN list does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.scalar.tables import float_word, pack_table, table_values
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression, Value

VALUES: dict[GsqlType, st.SearchStrategy[Value]] = {
    GsqlType.INT: st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
    GsqlType.FLOAT: st.floats() | st.sampled_from([0.0, -0.0, math.nan]),
    GsqlType.IP: st.integers(0, 2**128 - 1) | st.integers(0xFFFF << 32, 0xFFFF << 32 | 5),
    GsqlType.STRING: st.binary(max_size=3),
    GsqlType.BOOL: st.booleans(),
}


@given(st.data(), st.sampled_from(list(VALUES)))
def test_a_table_answers_as_the_list_of_its_values(data: st.DataObject, kind: GsqlType) -> None:
    values = data.draw(st.lists(VALUES[kind], min_size=1, max_size=40))
    table = Literal(pack_table(values, kind), GsqlType.STRING)
    asked = data.draw(st.lists(VALUES[kind], max_size=10))
    for value in (*values, *asked, None):
        operand = Literal(value, kind)
        choices = [Literal(each, kind) for each in values]
        assert _value(call("in_table", operand, table)) == _value(call("in", operand, *choices))


@given(st.data(), st.sampled_from(list(VALUES)))
def test_a_table_holds_each_value_once_in_order(data: st.DataObject, kind: GsqlType) -> None:
    values = data.draw(st.lists(VALUES[kind]))
    held = table_values(pack_table(values, kind))
    key = float_word if kind is GsqlType.FLOAT else lambda value: value
    assert [key(value) for value in held] == sorted({key(value) for value in values})  # type: ignore[arg-type]


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_words_of_floats_are_ordered_as_floats(a: float, b: float) -> None:
    assert (a < b) == (float_word(a) < float_word(b))
    assert (a == b) == (float_word(a) == float_word(b))
    assert float_word(a) < float_word(math.nan)


def test_the_function_is_for_kernels_too() -> None:
    assert FUNCTIONS["in_table"].is_lfta_safe


def _value(expression: Expression) -> Value:
    def no_leaf(leaf: object) -> Value:
        raise AssertionError(leaf)

    return evaluate(expression, no_leaf)
