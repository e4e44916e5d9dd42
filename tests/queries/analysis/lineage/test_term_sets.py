"""Sets of terms: what two of them have in common is the meet of a semilattice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.queries.analysis.lineage.terms import (
    Term,
    are_functions_of,
    common,
    joined,
    reduced,
    term_of,
)
from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.expressions.expressions import Expression, Literal, PacketField
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Sequence

X, Y = (PacketField(name, GsqlType.INT, is_nullable=False) for name in ("srcPort", "destPort"))
_BASES: list[Expression] = [X, Y, X, Y, call("add_int", X, Y), call("bit_or", X, Y)]
_Set = tuple[Term, ...]


def _of(function: str, value: Expression, constant: int) -> Expression:
    return call(function, value, Literal(constant, GsqlType.INT))


_steps = st.one_of(
    st.tuples(st.just("bit_and"), st.integers(1, 63)),
    st.tuples(st.just("idiv_int"), st.sampled_from([2, 3, 4, 6])),
    st.tuples(st.just("mod_int"), st.sampled_from([2, 3, 4, 6])),
    st.tuples(st.just("add_int"), st.just(1)),
)


@st.composite
def _expressions(draw: st.DrawFn) -> Expression:
    expression = draw(st.sampled_from(_BASES))
    for function, constant in draw(st.lists(_steps, max_size=3)):
        expression = _of(function, expression, constant)
    return expression


_sets = st.lists(_expressions(), max_size=3).map(
    lambda chosen: reduced(term_of({"s": each}) for each in chosen)
)


def _are_equal(one: _Set, other: _Set) -> bool:
    return are_functions_of(one, other) and are_functions_of(other, one)


@settings(max_examples=60, deadline=None)
@given(_sets, _sets, _sets)
def test_the_meet_of_sets_is_that_of_a_semilattice(one: _Set, other: _Set, third: _Set) -> None:
    assert common(one, one) == one
    assert _are_equal(common(one, other), common(other, one))
    assert _are_equal(common(common(one, other), third), common(one, common(other, third)))
    assert are_functions_of(common(one, other), one)
    assert are_functions_of(common(one, other), other)
    if are_functions_of(third, one) and are_functions_of(third, other):
        assert are_functions_of(third, common(one, other))


@settings(max_examples=60, deadline=None)
@given(_sets, _sets)
def test_packets_that_agree_in_one_set_agree_in_what_it_has_in_common(
    one: _Set, other: _Set
) -> None:
    """By brute force over pairs of packets with few ports."""
    shared = [term.over("s") for term in common(one, other)]
    for each in (one, other):
        expressions = [term.over("s") for term in each]
        values: dict[Any, Any] = {}
        for x in range(14):
            for y in range(7):
                key = _values(expressions, x, y)
                assert values.setdefault(key, _values(shared, x, y)) == _values(shared, x, y)


def _values(expressions: Sequence[Expression], x: int, y: int) -> tuple[Any, ...]:
    fields = {X.name: x, Y.name: y}
    return tuple(evaluate(each, lambda leaf: fields[leaf.name]) for each in expressions)


def test_sets_over_different_streams_are_joined_on_the_stream_that_they_share() -> None:
    syn = (
        term_of({"syn": X, "ack": Y}),
        term_of({"syn": Y, "ack": X}),
        term_of({"syn": _of("add_int", X, 1), "ack": X}),
    )
    alone = (term_of({"syn": _of("bit_and", X, 60)}),)
    assert joined(syn, alone) == (
        term_of({"syn": _of("bit_and", X, 60), "ack": _of("bit_and", Y, 60)}),
    )
    other = (term_of({"syn": X, "fin": X}),)
    assert joined(syn, other) == (term_of({"syn": X, "ack": Y, "fin": X}),)
    assert joined(alone, (term_of({"syn": Y}),)) == ()
