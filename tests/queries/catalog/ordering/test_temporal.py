"""What is inferred to be ordered is ordered, for random expressions over random ordered inputs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.queries.analysis.typing.constants import apply
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.catalog.ordering.temporal import column_ordering, infer, ordering_of
from gscope.queries.expressions.expressions import Column, Expression, Literal, PacketField, Value
from gscope.queries.expressions.types import (
    CONSTANT,
    DECREASING,
    INCREASING,
    VARYING,
    Direction,
    GsqlType,
    Ordering,
)

INT = GsqlType.INT
ORDERINGS = {
    "up": INCREASING,
    "down": DECREASING,
    "banded": Ordering(Direction.INCREASING, 3),
    "same": CONSTANT,
    "any": VARYING,
}
COLUMNS = {name: Column(name, INT, False) for name in ORDERINGS}
STEPS = st.lists(st.integers(0, 40), min_size=2, max_size=12)


def literals(low: int = -9, high: int = 9) -> st.SearchStrategy[Expression]:
    return st.integers(low, high).map(lambda value: Literal(value, INT))


def grown(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def calls(
        function: str, *arguments: st.SearchStrategy[Expression]
    ) -> st.SearchStrategy[Expression]:
        return st.tuples(*arguments).map(lambda values: apply(function, *values))

    def through_float(function: str) -> st.SearchStrategy[Expression]:
        return parts.map(
            lambda part: apply("float_to_int", apply(function, apply("int_to_float", part)))
        )

    return st.one_of(
        *(calls(f, parts, parts) for f in ("add_int", "sub_int", "min_of", "max_of", "mul_int")),
        *(calls(f, parts, literals()) for f in ("mul_int", "idiv_int", "mod_int", "bit_and")),
        *(calls(f, parts, literals(0, 4)) for f in ("shl", "shr")),
        *(calls(f, parts) for f in ("neg_int", "bit_not", "abs_int", "non_temporal")),
        *(through_float(f) for f in ("neg_float", "floor_float", "round_float")),
        calls("case", parts.map(lambda part: apply("int_to_bool", part)), parts, parts),
        calls("coalesce", parts, parts),
    )


EXPRESSIONS = st.recursive(
    st.sampled_from(list(COLUMNS.values())) | literals(), grown, max_leaves=8
)


def leaf_ordering(leaf: PacketField | Column) -> Ordering:
    return ORDERINGS[leaf.name]


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Value]]:
    ups = draw(STEPS)
    constant = draw(st.integers(-9, 9))
    made: list[dict[str, Value]] = []
    up, down, highest = draw(st.integers(-99, 99)), 0, 0
    for step in ups:
        up, down = up + step, down - draw(st.integers(0, 9))
        banded = highest + draw(st.integers(-3, 9))
        highest = max(highest, banded)
        made.append(
            {
                "up": up,
                "down": down,
                "banded": banded,
                "same": constant,
                "any": draw(st.integers(-50, 50)),
            }
        )
    return made


@settings(max_examples=400, deadline=None)
@given(EXPRESSIONS, rows())
def test_no_value_steps_back_further_than_inferred(
    expression: Expression, tuples: list[dict[str, Value]]
) -> None:
    ordering = infer(expression, leaf_ordering)
    values = [evaluate(expression, lambda leaf, row=row: row[leaf.name]) for row in tuples]  # type: ignore[misc]
    if ordering.direction is Direction.CONSTANT:
        assert len(set(values)) == 1
    if not ordering.is_temporal:
        return
    sign = 1 if ordering.direction is Direction.INCREASING else -1
    highest: int | float | None = None
    for value in values:
        assert isinstance(value, int | float)
        if highest is not None:
            assert sign * value >= highest - ordering.band
        highest = sign * value if highest is None else max(highest, sign * value)


TIME = PacketField("time", INT, False)
LENGTH = PacketField("len", INT, False)


def number(value: int) -> Literal:
    return Literal(value, INT)


@pytest.mark.parametrize(
    ("expression", "ordering"),
    [
        (apply("idiv_int", TIME, number(60)), INCREASING),
        (apply("idiv_int", TIME, number(-60)), DECREASING),
        (apply("neg_int", apply("neg_int", TIME)), INCREASING),
        (apply("add_int", TIME, TIME), INCREASING),
        (apply("sub_int", TIME, TIME), VARYING),
        (apply("mul_int", TIME, TIME), VARYING),
        (apply("mul_int", TIME, number(0)), CONSTANT),
        (apply("shl", TIME, number(40)), VARYING),
        (apply("shr", TIME, number(3)), INCREASING),
        (apply("add_int", TIME, LENGTH), VARYING),
        (apply("mod_int", TIME, number(60)), VARYING),
        (apply("idiv_int", TIME, number(0)), VARYING),
        (apply("non_temporal", TIME), VARYING),
        (apply("int_to_float", TIME), VARYING),
        (PacketField("interface", GsqlType.STRING, False), CONSTANT),
    ],
)
def test_orderings_of_columns_over_packets(expression: Expression, ordering: Ordering) -> None:
    assert ordering_of(expression) == ordering


def test_bands_are_stretched_and_shrunk() -> None:
    banded = Column("banded", INT, False)
    for function, value, band in (("mul_int", 4, 12), ("idiv_int", 2, 2), ("add_int", 7, 3)):
        made = apply(function, banded, number(value))
        assert column_ordering(made, leaf_ordering).band == band


def test_what_can_be_null_closes_nothing() -> None:
    assert column_ordering(Column("up", INT, True), leaf_ordering) == VARYING
