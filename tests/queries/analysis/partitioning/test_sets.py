"""Partitioning sets: their meet is that of a semilattice, and what both sets distinguish."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from gscope.queries.analysis.lineage.cuts import (
    WHOLE,
    AddressMask,
    Cut,
    mask,
    quotient,
    remainder,
)
from gscope.queries.analysis.partitioning.sets import PartitionSet, Symmetric, plain
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.expressions.expressions import PacketField
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    import random
    from collections.abc import Hashable

PORTS = tuple(
    PacketField(name, GsqlType.INT, is_nullable=False) for name in ("srcPort", "destPort")
)
ADDRESSES = tuple(PacketField(name, GsqlType.IP, is_nullable=False) for name in ("srcIP", "destIP"))

_cuts: tuple[Cut | None, ...] = (
    WHOLE,
    mask(1),
    mask(6),
    mask(-4),
    quotient(3),
    quotient(4),
    remainder(6),
    remainder(9),
)
_of_ports = st.sampled_from([cut for cut in _cuts if cut is not None])
_of_addresses = st.sampled_from([WHOLE, AddressMask.masked(3), AddressMask.masked(6)])
_plain = st.one_of(
    st.builds(plain, st.sampled_from(PORTS), _of_ports),
    st.builds(plain, st.sampled_from(ADDRESSES), _of_addresses),
)
_symmetric = st.one_of(
    st.builds(lambda cut: Symmetric.of(PORTS[0], PORTS[1], cut), _of_ports),
    st.builds(lambda cut: Symmetric.of(ADDRESSES[0], ADDRESSES[1], cut), _of_addresses),
)
SETS = st.builds(PartitionSet.of, st.lists(_plain, max_size=3), st.lists(_symmetric, max_size=2))

_IPV4 = 0xFFFF << 32
PACKETS = [
    {"srcPort": a, "destPort": b, "srcIP": _IPV4 + c, "destIP": _IPV4 + d}
    for a, b, c, d in product(range(12), range(12), (0,), (1,))
] + [
    {"srcPort": 0, "destPort": a, "srcIP": _IPV4 + b, "destIP": _IPV4 + c}
    for a, b, c in product((0, 5), range(8), range(8))
]


def value(found: PartitionSet, packet: dict[str, int]) -> Hashable:
    """What a set distinguishes packets by."""
    own = [evaluate(term.over(""), lambda leaf: packet[leaf.name]) for term in found.plain]
    pairs = [
        sorted(repr(evaluate(part.over(""), lambda leaf: packet[leaf.name])) for part in pair.parts)
        for pair in found.symmetric
    ]
    return repr((own, pairs))


@given(SETS, SETS, SETS)
def test_the_meet_is_that_of_a_semilattice(
    one: PartitionSet, other: PartitionSet, third: PartitionSet
) -> None:
    assert one.meet(one) == one
    assert one.meet(other) == other.meet(one)
    assert one.meet(other).meet(third) == one.meet(other.meet(third))


@given(SETS, SETS)
def test_packets_that_one_set_keeps_together_are_kept_together_by_the_meet(
    one: PartitionSet, other: PartitionSet
) -> None:
    met = one.meet(other)
    for each in (one, other):
        assert each.determines(met)
        groups: dict[Hashable, Hashable] = {}
        for packet in PACKETS:
            assert groups.setdefault(value(each, packet), value(met, packet)) == value(met, packet)


@given(SETS, SETS, SETS)
def test_the_meet_is_the_finest_set_that_both_determine(
    one: PartitionSet, other: PartitionSet, third: PartitionSet
) -> None:
    if one.determines(third) and other.determines(third):
        assert one.meet(other).determines(third)


@given(SETS, SETS)
def test_a_set_determines_only_what_it_distinguishes(
    one: PartitionSet, other: PartitionSet
) -> None:
    groups: dict[Hashable, Hashable] = {}
    agrees = all(
        groups.setdefault(value(one, packet), value(other, packet)) == value(other, packet)
        for packet in PACKETS
    )
    assert agrees or not one.determines(other)


@given(st.lists(_plain, max_size=4), st.lists(_symmetric, max_size=3), st.randoms())
def test_the_order_of_members_does_not_matter(
    terms: list[object], pairs: list[object], source: random.Random
) -> None:
    made = PartitionSet.of(terms, pairs)  # type: ignore[arg-type]
    source.shuffle(terms)
    source.shuffle(pairs)
    assert PartitionSet.of(terms, pairs) == made  # type: ignore[arg-type]


def test_both_directions_of_a_conversation_have_one_value() -> None:
    pair = PartitionSet.of((), [Symmetric.of(ADDRESSES[0], ADDRESSES[1], WHOLE)])
    there, back = ({"srcIP": 1, "destIP": 2}, {"srcIP": 2, "destIP": 1})
    assert value(pair, there) == value(pair, back)
    assert pair.texts() == ("{srcIP, destIP}",)
