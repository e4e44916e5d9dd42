"""Every function that states how it moves moves so.

Random typed expressions over random ordered inputs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.queries.analysis.typing.constants import apply
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.ordering.temporal import infer
from gscope.queries.expressions.expressions import (
    Column,
    Expression,
    Literal,
    PacketField,
    Value,
    walk,
)
from gscope.queries.expressions.types import CONSTANT, VARYING, Direction, GsqlType, Ordering

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.catalog.scalar.entry import FunctionEntry

TYPES = (GsqlType.INT, GsqlType.FLOAT, GsqlType.TIMESTAMP, GsqlType.BOOL, GsqlType.INTERVAL)
MOVING = {name: entry for name, entry in FUNCTIONS.items() if entry.gains}
"""All functions of the catalog that state gains."""

STILL = ("abs_int", "mod_int", "bit_and", "abs_float", "non_temporal", "int_to_bool", "case")
"""Some that state none, to be mixed in."""

ORDERINGS = {
    "up": Ordering(Direction.INCREASING),
    "down": Ordering(Direction.DECREASING),
    "up_banded": Ordering(Direction.INCREASING, 3),
    "down_banded": Ordering(Direction.DECREASING, 2),
    "same": CONSTANT,
    "any": VARYING,
}
COLUMNS = {
    kind: [Column(f"{kind.value}.{name}", kind, False) for name in ORDERINGS]
    for kind in (GsqlType.INT, GsqlType.FLOAT, GsqlType.TIMESTAMP)
}


def leaf_ordering(leaf: PacketField | Column) -> Ordering:
    return ORDERINGS[leaf.name.partition(".")[2]]


def literals(kind: GsqlType) -> st.SearchStrategy[Expression]:
    values: dict[GsqlType, st.SearchStrategy[Value]] = {
        GsqlType.FLOAT: st.sampled_from([-2.5, -1.0, -0.1, 0.0, 0.3, 0.5, 3.0]),
        GsqlType.BOOL: st.booleans(),
    }
    return values.get(kind, st.integers(-7, 7)).map(lambda value: Literal(value, kind))


def leaves(kind: GsqlType) -> st.SearchStrategy[Expression]:
    if kind not in COLUMNS:
        return literals(kind)
    return st.sampled_from(COLUMNS[kind]) | st.sampled_from(COLUMNS[kind]) | literals(kind)


@st.composite
def expressions(draw: st.DrawFn, kind: GsqlType, depth: int = 3) -> Expression:
    """An expression of the type, of functions with gains and of few others."""
    names = [name for name in (*MOVING, *STILL) if _gives(FUNCTIONS[name], kind)]
    if depth == 0 or not names or draw(st.integers(0, 3)) == 0:
        return draw(leaves(kind))
    return draw(calls(draw(st.sampled_from(names)), kind, depth - 1))


@st.composite
def calls(draw: st.DrawFn, name: str, kind: GsqlType, depth: int) -> Expression:
    """A call of the function ``name`` that gives ``kind``."""
    parameters = list(FUNCTIONS[name].parameters)
    parameters += parameters[-FUNCTIONS[name].repeats :] if FUNCTIONS[name].repeats == 1 else []
    arguments = [
        draw(literals(p.type or kind) if p.is_literal else expressions(p.type or kind, depth))
        for p in parameters
    ]
    if draw(st.booleans()) and len(arguments) == 2:
        # Most gains of two arguments ask for a constant.
        place = draw(st.integers(0, 1))
        arguments[place] = draw(literals(arguments[place].type))
    if name in ("shl", "shr"):
        arguments[1] = Literal(draw(st.integers(0, 4)), GsqlType.INT)
    return apply(name, *arguments)


def _gives(entry: FunctionEntry, kind: GsqlType) -> bool:
    if any(p.type not in (*TYPES, None) for p in entry.parameters):
        return False
    return entry.result is kind or (entry.result is None and kind in COLUMNS)


@st.composite
def inputs(draw: st.DrawFn, expression: Expression) -> list[dict[str, Value]]:
    """Tuples of what ``expression`` reads.

    Columns keep their orderings, and few do more than they must.
    """
    made: list[dict[str, Value]] = [{} for _ in range(draw(st.integers(2, 9)))]
    read = {part.name for part in walk(expression) if isinstance(part, Column)}
    for kind, columns in COLUMNS.items():
        scale: Callable[[int], Value] = float if kind is GsqlType.FLOAT else int
        for column in (each for each in columns if each.name in read):
            ordering = leaf_ordering(column)
            sign = -1 if ordering.direction is Direction.DECREASING else 1
            highest = draw(st.integers(-40, 40))
            for row in made:
                if ordering.is_temporal:
                    value = highest + draw(st.integers(-ordering.band, 9))
                    highest = max(highest, value)
                else:
                    value = highest if ordering == CONSTANT else draw(st.integers(-40, 40))
                row[column.name] = scale(sign * value)
    return made


def check(expression: Expression, rows: list[dict[str, Value]]) -> None:
    ordering = infer(expression, leaf_ordering)
    values = [evaluate(expression, lambda leaf, row=row: row[leaf.name]) for row in rows]  # type: ignore[misc]
    if ordering.direction is Direction.CONSTANT:
        assert len({repr(value) for value in values}) == 1, values
    if not ordering.is_temporal:
        return
    sign = 1 if ordering.direction is Direction.INCREASING else -1
    # Doubles are rounded; only integers close groups.
    allowed = ordering.band + (1e-9 if expression.type is GsqlType.FLOAT else 0)
    highest = -math.inf
    for value in values:
        assert isinstance(value, int | float), "what is temporal is never NULL"
        assert sign * value >= highest - allowed, values
        highest = max(highest, sign * value)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from((GsqlType.INT, GsqlType.TIMESTAMP)).flatmap(expressions), st.data())
def test_what_is_inferred_increasing_never_decreases(
    expression: Expression, data: st.DataObject
) -> None:
    check(expression, data.draw(inputs(expression)))


@pytest.mark.parametrize("name", sorted(MOVING))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_function_moves_as_it_states(name: str, data: st.DataObject) -> None:
    entry = FUNCTIONS[name]
    kinds = [kind for kind in TYPES if _gives(entry, kind)]
    assert kinds, f"{name} states gains, so it must take what can be ordered"
    expression = data.draw(calls(name, data.draw(st.sampled_from(kinds)), 0))
    check(expression, data.draw(inputs(expression)))
