"""Hypothesis strategies: traffic with a wild clock, heartbeats, and random LFTAs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st
from tests.capture.lfta.lfta_builders import (
    aggregation,
    count,
    epoch_of,
    field,
    ipv4,
    ipv6,
    literal,
    partial,
    selection,
    tcp,
    udp,
)
from tests.capture.packet.kernel_reader import RawPacket
from tests.capture.packet.packet_forge import packets

from gscope.capture.sources.block import Block
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import NamedExpression
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Lfta, Partial

START_NS = 1_700_000_000 * 10**9
_STEPS = (0, 1, 1, 999, -5000, 10**6, 10**9, 7 * 10**9, 10**15, -(10**15))

_PLAIN = [
    ipv4(0x0A000001, 0xC0A80001, tcp(1000, 80, 5, 2), 6),
    ipv4(0x0A000002, 0xC0A80001, tcp(1000, 80, 5, 18, b"GET / HTTP/1.1"), 6),
    ipv4(0x0A000001, 0x08080808, udp(53, 53, b"\x00\xff")),
    ipv6(1 << 125 | 5, 1, udp(7, 8)),
    ipv6(1 << 125 | 6, 1, tcp(7, 8, 2**32 - 1, 255), 6),
]


@st.composite
def traffic(draw: st.DrawFn) -> list[RawPacket]:
    """Packets, some of them damaged, that come back often; time steps forth and back."""
    pool = [RawPacket(1, data, len(data), 0) for data in _PLAIN]
    pool += draw(st.lists(packets(), max_size=4))
    # Drawing each packet would make short traffic only; a seed makes enough to fill buckets and
    # batches.
    chance = draw(st.randoms(use_true_random=False))
    steps = draw(st.lists(st.sampled_from(_STEPS), min_size=1, max_size=4))
    length = draw(st.integers(0, 400))
    time_ns = START_NS
    made = []
    for _ in range(length):
        time_ns += chance.choice(steps)
        packet = chance.choice(pool)
        made.append(RawPacket(packet.linktype, packet.data, packet.wirelen, time_ns))
    return made


@st.composite
def beats(draw: st.DrawFn, sent: list[RawPacket]) -> list[tuple[int, int]]:
    """Heartbeats at moments of the traffic, with skews, in rising order."""
    if not sent:
        return []
    moments = st.sampled_from([packet.time_ns for packet in sent]).map(lambda t: t + 1)
    skews = st.sampled_from([0, 0, 5000, 10**10])
    return sorted(draw(st.lists(st.tuples(moments, skews), max_size=4)))


def blocks_of(sent: list[RawPacket], size: int) -> list[Block]:
    """The packets in blocks of at most ``size``."""
    return [_block(sent[n : n + size]) for n in range(0, len(sent), size)]


def _block(sent: list[RawPacket]) -> Block:
    block = Block.allocate(sum(len(packet.data) for packet in sent), len(sent))
    block.data[:] = 0xEE
    at = 0
    for n, packet in enumerate(sent):
        size = len(packet.data)
        block.data[at : at + size] = np.frombuffer(packet.data, np.uint8)
        block.offset[n], block.caplen[n], block.wirelen[n] = at, size, packet.wirelen
        block.time_ns[n], block.linktype[n] = packet.time_ns, packet.linktype
        at += size
    block.count = len(sent)
    return block


_FIELDS: dict[GsqlType, tuple[str, ...]] = {
    GsqlType.INT: ("len", "srcPort", "ttl", "flags", "vlan", "sequence_number", "inner.protocol"),
    GsqlType.IP: ("srcIP", "destIP", "senderIP", "inner.srcIP"),
    GsqlType.MAC: ("srcMAC",),
    GsqlType.TIMESTAMP: ("timestamp",),
}


def expressions(type_: GsqlType, depth: int = 2) -> st.SearchStrategy[Expression]:
    """Expressions of a type over packet fields."""
    if type_ is GsqlType.BOOL:
        return _booleans(depth)
    if type_ is GsqlType.FLOAT:
        ints = expressions(GsqlType.INT, depth - 1)
        return st.builds(
            lambda a, b: call("div_float", call("int_to_float", a), call("int_to_float", b)),
            ints,
            ints,
        )
    leaves: st.SearchStrategy[Expression] = st.sampled_from(_FIELDS[type_]).map(field)
    if depth <= 0:
        return leaves
    inner = expressions(type_, depth - 1)
    choice = st.builds(lambda c, a, b: call("case", c, a, b), _booleans(depth - 1), inner, inner)
    options = [leaves, choice, st.builds(lambda a, b: call("coalesce", a, b), inner, inner)]
    options.append(
        st.builds(
            lambda n, a, b: call(n, a, b), st.sampled_from(["min_of", "max_of"]), inner, inner
        )
    )
    if type_ is GsqlType.INT:
        names = st.sampled_from(
            ["add_int", "mul_int", "idiv_int", "mod_int", "bit_and", "bit_xor", "shr", "shl"]
        )
        numbers = st.sampled_from([0, 1, 7, 255, -3, 2**40]).map(literal)
        options.append(st.builds(lambda n, a, b: call(n, a, b), names, inner, inner | numbers))
    if type_ is GsqlType.IP:
        masks = st.sampled_from([0xFFFFFF00, 255, -1]).map(literal)
        options.append(st.builds(lambda a, m: call("ip_mask", a, m), inner, masks))
    return st.one_of(options)


def _booleans(depth: int) -> st.SearchStrategy[Expression]:
    comparisons = [
        st.builds(
            lambda n, a, b: call(n, a, b),
            st.sampled_from(["eq", "ne", "lt", "ge"]),
            expressions(type_, 0),
            expressions(type_, 0),
        )
        for type_ in (GsqlType.INT, GsqlType.IP)
    ]
    comparisons.append(st.builds(lambda a: call("is_null", a), expressions(GsqlType.INT, 0)))
    if depth <= 0:
        return st.one_of(comparisons)
    inner = _booleans(depth - 1)
    pairs = st.builds(lambda n, a, b: call(n, a, b), st.sampled_from(["and", "or"]), inner, inner)
    return st.one_of(*comparisons, pairs, st.builds(lambda a: call("not", a), inner))


_KEY_TYPES = st.sampled_from(
    [
        GsqlType.INT,
        GsqlType.INT,
        GsqlType.IP,
        GsqlType.IP,
        GsqlType.MAC,
        GsqlType.FLOAT,
        GsqlType.BOOL,
    ]
)
_ORDERED = (GsqlType.INT, GsqlType.IP, GsqlType.FLOAT, GsqlType.TIMESTAMP, GsqlType.BOOL)


@st.composite
def partials(draw: st.DrawFn, number: int) -> Partial:
    op = draw(st.sampled_from(PartialOp))
    if op in (PartialOp.MIN, PartialOp.MAX):
        argument = draw(st.sampled_from(_ORDERED).flatmap(lambda t: expressions(t, 1)))
        return partial(f"p{number}", op, argument)
    if op is PartialOp.COUNT and draw(st.booleans()):
        return count(f"p{number}")
    argument = draw(expressions(GsqlType.INT, 1))
    return (
        count(f"p{number}", argument)
        if op is PartialOp.COUNT
        else partial(f"p{number}", op, argument)
    )


@st.composite
def lftas(draw: st.DrawFn, name: str = "lfta") -> Lfta:
    """A selection or an aggregation that an LFTA can run."""
    predicate = draw(st.none() | _booleans(1))
    types = draw(st.lists(_KEY_TYPES, min_size=1, max_size=4))
    named = [NamedExpression(f"k{n}", draw(expressions(type_, 1))) for n, type_ in enumerate(types)]
    if draw(st.integers(0, 3)) == 0:
        return selection(named, predicate, name=name)
    epoch = draw(st.sampled_from([epoch_of(), epoch_of(1), nanoseconds(1), nanoseconds(1000)]))
    states = [draw(partials(n)) for n in range(draw(st.integers(0, 3)))]
    return aggregation([epoch, *named], states, predicate, name=name)


def nanoseconds(unit: int) -> NamedExpression:
    """An epoch of ``unit`` nanoseconds."""
    return NamedExpression("tb", call("idiv_int", field("time_ns"), literal(unit)))
