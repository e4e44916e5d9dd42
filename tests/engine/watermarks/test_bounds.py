"""Bounds and spans through expressions: every value keeps what is promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.watermarks.bounds import (
    ANYTHING,
    ENDED,
    NO_VALUE,
    NOTHING,
    bound_of,
    bounds_by_name,
    span_of,
    spans_by_name,
)
from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.expressions.expressions import Column, Expression, Literal
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import PacketField, Value

T = Column("t", GsqlType.INT, is_nullable=False)
U = Column("u", GsqlType.INT, is_nullable=True)
EITHER = call("coalesce", T, U)


def number(value: int) -> Literal:
    return Literal(value, GsqlType.INT)


def increasing() -> st.SearchStrategy[Expression]:
    """Expressions that do not decrease while t and u do not."""

    def extend(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        constants = st.integers(1, 9).map(number)
        return st.one_of(
            st.builds(lambda e, c: call("add_int", e, c), inner, constants),
            st.builds(lambda e, c: call("sub_int", e, c), inner, constants),
            st.builds(lambda e, c: call("mul_int", e, c), inner, constants),
            st.builds(lambda e, c: call("idiv_int", e, c), inner, constants),
            st.builds(lambda a, b: call("add_int", a, b), inner, inner),
            st.builds(lambda a, b: call("coalesce", a, b), inner, inner),
        )

    return st.recursive(st.sampled_from([T, U]), extend, max_leaves=4)


def value(expression: Expression, t: int, u: int | None) -> Value:
    def leaf(part: Column | PacketField) -> Value:
        return {"t": t, "u": u}[part.name]

    return evaluate(expression, leaf)


TIMES = st.integers(-50, 50)
LATER = st.integers(0, 30)


@given(increasing(), TIMES, TIMES, LATER, st.none() | LATER)
def test_no_later_value_is_below_the_bound(
    expression: Expression, t: int, u: int, t_later: int, u_later: int | None
) -> None:
    bound = bound_of(expression, bounds_by_name({"t": t, "u": u}))
    later = value(expression, t + t_later, None if u_later is None else u + u_later)
    assert later is None or (isinstance(later, int) and later >= bound)


@given(increasing(), TIMES, TIMES, LATER, LATER, st.data())
def test_every_value_is_within_the_span(
    expression: Expression, t: int, u: int, width: int, height: int, data: st.DataObject
) -> None:
    known = spans_by_name({"t": (t, t + width), "u": (u, u + height)})
    least, greatest = span_of(expression, known)
    inside = value(
        expression,
        data.draw(st.integers(t, t + width)),
        data.draw(st.none() | st.integers(u, u + height)),
    )
    assert inside is None or (isinstance(inside, int) and least <= inside <= greatest)


def test_a_falling_column_is_known_by_its_negative() -> None:
    known = bounds_by_name({"-t": -7})
    assert bound_of(call("neg_int", T), known) == -7
    assert bound_of(T, known) == 7


def test_what_falls_may_still_be_as_great_as_any_part() -> None:
    known = bounds_by_name({"-t": -7, "-u": -9})
    assert bound_of(EITHER, known, is_falling=True) == 9


def test_a_part_that_has_ended_holds_up_no_other() -> None:
    assert bound_of(EITHER, bounds_by_name({"t": ENDED, "u": 4})) == 4
    assert bound_of(EITHER, bounds_by_name({"t": ENDED, "u": ENDED})) == ENDED
    assert bound_of(EITHER, bounds_by_name({"t": 3})) == NOTHING


def test_a_side_without_rows_adds_nothing_to_a_span() -> None:
    assert span_of(EITHER, spans_by_name({"t": NO_VALUE, "u": (1, 2)})) == (1, 2)
    assert span_of(call("add_int", T, number(1)), spans_by_name({"t": NO_VALUE})) == NO_VALUE
    assert span_of(EITHER, spans_by_name({"t": (1, 2)})) == ANYTHING


def test_nothing_is_known_of_a_division_by_zero() -> None:
    broken = call("idiv_int", T, U)
    assert span_of(broken, spans_by_name({"t": (1, 2), "u": (0, 5)})) == (NOTHING, ENDED)
