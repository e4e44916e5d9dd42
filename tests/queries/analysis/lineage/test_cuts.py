"""Cuts of one value: their meet is that of a semilattice, and what follows from either of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gscope.queries.analysis.lineage.cuts import (
    WHOLE,
    AddressMask,
    Cut,
    is_function_of,
    mask,
    meet,
    quotient,
    remainder,
)
from gscope.queries.analysis.lineage.terms import is_determined, term_of
from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.expressions.expressions import Expression, Literal, PacketField
from gscope.queries.expressions.types import GsqlType

X = PacketField("srcPort", GsqlType.INT, is_nullable=False)
ADDRESS = PacketField("srcIP", GsqlType.IP, is_nullable=False)

_divisors = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16, 60, 64, 90, 100, 1 << 61, 3 << 60])
_masks = st.one_of(
    st.integers(0, (1 << 64) - 1),
    st.integers(0, 255),
    st.integers(0, 63).map(lambda count: -1 << count),
)
_of_numbers = st.one_of(
    st.just(WHOLE), _masks.map(mask), _divisors.map(quotient), _divisors.map(remainder)
).filter(lambda cut: cut is not None)
_of_addresses = st.one_of(
    st.just(WHOLE),
    st.integers(-(1 << 63), (1 << 63) - 1).map(AddressMask.masked),
    st.tuples(st.integers(1, 32), st.integers(1, 128)).map(lambda bits: AddressMask.prefix(*bits)),
).filter(lambda cut: cut is not None)
_triples = st.one_of(st.tuples(*[_of_numbers] * 3), st.tuples(*[_of_addresses] * 3))


def _meet(one: Cut | None, other: Cut | None) -> Cut | None:
    """The meet, with None for constants, which are below all."""
    return None if one is None or other is None else meet(one, other)


@given(_triples)
def test_the_meet_is_that_of_a_semilattice(cuts: tuple[Any, Any, Any]) -> None:
    one, other, third = cuts
    assert _meet(one, one) == one
    assert _meet(one, other) == _meet(other, one)
    assert _meet(_meet(one, other), third) == _meet(one, _meet(other, third))


@given(_triples)
def test_the_meet_is_a_function_of_both_and_the_greatest(cuts: tuple[Any, Any, Any]) -> None:
    one, other, third = cuts
    found = meet(one, other)
    assert found is None or (is_function_of(found, one) and is_function_of(found, other))
    if is_function_of(third, one) and is_function_of(third, other):
        assert found is not None
        assert is_function_of(third, found)


def _of_field(expression: Expression, value: int) -> Any:
    """Return the value of an expression over one field."""
    return evaluate(expression, lambda _: value)


def _partition(cut: Cut | None, values: range) -> set[frozenset[int]]:
    blocks: dict[Any, set[int]] = {}
    for value in values:
        key = None if cut is None else _of_field(cut.applied(X), value)
        blocks.setdefault(key, set()).add(value)
    return {frozenset(block) for block in blocks.values()}


def _common_coarsening(one: set[frozenset[int]], other: set[frozenset[int]]) -> set[frozenset[int]]:
    """The finest partition that both refine: overlapping blocks are one."""
    found = [set(block) for block in one]
    for block in other:
        touched = [each for each in found if each & block]
        found = [each for each in found if not each & block] + [set().union(*touched)]
    return {frozenset(block) for block in found}


_small = st.one_of(
    st.just(WHOLE),
    st.integers(1, 31).map(lambda bits: mask(bits | -32)),
    st.integers(1, 31).map(mask),
    st.sampled_from([2, 3, 4, 5, 6, 8, 10, 12]).map(quotient),
    st.sampled_from([2, 3, 4, 5, 6, 8, 10, 12]).map(remainder),
)


@settings(deadline=None, max_examples=30)
@given(_small, _small)
def test_the_meet_is_the_finest_partition_of_values_that_both_refine(one: Cut, other: Cut) -> None:
    """By brute force over numbers up to a common period of all these functions."""
    values = range(480)
    expected = _common_coarsening(_partition(one, values), _partition(other, values))
    found = _partition(meet(one, other), values)
    # Sound always; the finest where both are of one kind.
    assert _common_coarsening(found, expected) == found
    if type(one) is type(other):
        assert found == expected


_functions = st.one_of(
    st.tuples(st.just("bit_and"), st.integers(-256, 255)),
    st.tuples(st.just("shr"), st.integers(0, 8)),
    st.tuples(st.sampled_from(["idiv_int", "floor_div", "mod_int"]), st.integers(1, 12)),
    st.tuples(st.sampled_from(["add_int", "sub_int", "bit_xor", "mul_int"]), st.integers(-7, 7)),
)


@settings(deadline=None, max_examples=40)
@given(st.lists(_functions, max_size=4))
@example([("idiv_int", 3), ("bit_and", -11)])
@example([("idiv_int", 3), ("bit_and", -16)])
def test_a_term_makes_the_same_groups_as_its_expression(chain: list[tuple[str, int]]) -> None:
    """Whatever part of an expression is a cut, and whichever function of one value is dropped."""
    expression: Expression = X
    for function, constant in chain:
        expression = call(function, expression, Literal(constant, GsqlType.INT))
    term = term_of({"s": expression})
    values = range(300)

    def groups(of: Expression) -> set[frozenset[int]]:
        blocks: dict[Any, set[int]] = {}
        for value in values:
            blocks.setdefault(_of_field(of, value), set()).add(value)
        return {frozenset(block) for block in blocks.values()}

    assert groups(term.over("s")) == groups(expression)


_addresses = st.one_of(
    st.integers(0, (1 << 32) - 1).map(lambda low: 0xFFFF << 32 | low),
    st.integers(0x2001 << 112, (0x2002 << 112) - 1),
)


@given(_of_addresses, _of_addresses, _addresses, _addresses)
def test_the_meet_of_masks_of_addresses_agrees_where_one_of_them_does(
    one: Cut, other: Cut, first: int, second: int
) -> None:
    """No meet with a cut distinguishes addresses that the cut does not."""

    def value(cut: Cut, address: int) -> Any:
        return _of_field(cut.applied(ADDRESS), address)

    found = meet(one, other)
    if found is not None and value(one, first) == value(one, second):
        assert value(found, first) == value(found, second)


_NEAR_IPV4 = [
    number << 48 | prefix << 32 | 0x01020304
    for number in (0, 0x1234)
    for prefix in (0xFFFF, 0xFFFE)
]
"""1.2.3.4, ::ffff:1.2.3.4 of an IPv6 header, and addresses that a mask could make one of them."""


@pytest.mark.parametrize(
    "mask", [0x0000FFFFFFFFFFFF, 0x0003FFFFFFFFFFFF, -1, -256, 0xFFFFFF00, 0x00FF0000FFFFFFFF]
)
def test_a_mask_is_a_cut_only_if_its_results_have_its_bits(mask: int) -> None:
    """The address ``::ffff:1.2.3.4`` that a mask makes is written as another one."""
    expression = call("ip_mask", ADDRESS, Literal(mask, GsqlType.INT))
    term = term_of({"s": expression})
    coarser = term_of({"s": call("ip_mask", ADDRESS, Literal(mask & 0x1FFFFFFFF, GsqlType.INT))})
    if is_determined(coarser, [term]):
        results: dict[Any, Any] = {}
        for address in _NEAR_IPV4:
            key = _of_field(term.over("s"), address)
            value = _of_field(coarser.over("s"), address)
            assert results.setdefault(key, value) == value
