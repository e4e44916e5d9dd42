"""LFTAs, packets and blocks made by hand for the tests of this folder."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.sources.block import Block
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import (
    Call,
    Expression,
    Literal,
    NamedExpression,
    PacketField,
    Value,
)
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import INCREASING, VARYING, GsqlType
from gscope.queries.plan.program import Lfta, Partial

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

INT, IP, STRING, BOOL = GsqlType.INT, GsqlType.IP, GsqlType.STRING, GsqlType.BOOL

FIELD_TYPES = {
    "srcIP": IP,
    "destIP": IP,
    "senderIP": IP,
    "targetIP": IP,
    "data": STRING,
    "TCP_data": STRING,
    "UDP_data": STRING,
    "timestamp": GsqlType.TIMESTAMP,
    "srcMAC": GsqlType.MAC,
    "destMAC": GsqlType.MAC,
    "senderMAC": GsqlType.MAC,
    "targetMAC": GsqlType.MAC,
}
ALWAYS_THERE = {"time", "timestamp", "time_ns", "len", "caplen", "linktype"}


def field(name: str, *, nullable: bool | None = None) -> PacketField:
    """A packet field; nullable unless every packet has it."""
    type_ = FIELD_TYPES.get(name.removeprefix("inner."), INT)
    return PacketField(name, type_, name not in ALWAYS_THERE if nullable is None else nullable)


def literal(value: Value, type_: GsqlType = INT) -> Literal:
    return Literal(value, type_)


IS_IP: Call = call("not", call("is_null", field("ipversion")))


def epoch_of(seconds: int = 10) -> NamedExpression:
    return NamedExpression("tb", call("idiv_int", field("time"), literal(seconds)))


def count(name: str = "cnt", argument: Expression | None = None) -> Partial:
    return Partial(name, PartialOp.COUNT, argument, INT, is_nullable=False)


def partial(name: str, op: PartialOp, argument: Expression) -> Partial:
    return Partial(name, op, argument, argument.type, argument.is_nullable)


def aggregation(
    keys: Sequence[NamedExpression],
    partials: Sequence[Partial],
    predicate: Expression | None = None,
    *,
    name: str = "lfta",
    epoch: str = "tb",
    interfaces: tuple[str, ...] = ("main",),
) -> Lfta:
    columns = [
        ColumnSchema(
            key.name,
            key.expression.type,
            key.expression.is_nullable,
            INCREASING if key.name == epoch else VARYING,
        )
        for key in keys
    ]
    columns += [ColumnSchema(p.name, p.type, p.is_nullable) for p in partials]
    return Lfta(
        name,
        name,
        "IP",
        interfaces,
        predicate,
        tuple(keys),
        epoch,
        tuple(partials),
        (),
        Schema(tuple(columns)),
    )


def selection(
    columns: Sequence[NamedExpression],
    predicate: Expression | None = None,
    *,
    name: str = "lfta",
    temporal: Iterable[str] = (),
) -> Lfta:
    rising = set(temporal)
    schema = Schema(
        tuple(
            ColumnSchema(
                c.name,
                c.expression.type,
                c.expression.is_nullable,
                INCREASING if c.name in rising else VARYING,
            )
            for c in columns
        )
    )
    return Lfta(name, name, "IP", ("main",), predicate, (), None, (), tuple(columns), schema)


def flow(name: str = "flow") -> Lfta:
    """Packets and bytes by five-tuple and ten seconds, over IPv4 and IPv6."""
    names = ("ipversion", "protocol", "srcIP", "destIP", "srcPort", "destPort")
    keys = [epoch_of(), *(NamedExpression(n, field(n, nullable=False)) for n in names)]
    partials = [count(), partial("bytes", PartialOp.SUM, field("len"))]
    return aggregation(keys, partials, IS_IP, name=name)


def block_of(packets: Sequence[tuple[int, bytes]], linktype: int = 1) -> Block:
    """Packets given as (time_ns, bytes), all captured whole."""
    block = Block.allocate(sum(len(data) for _, data in packets), max(1, len(packets)))
    at = 0
    for n, (time_ns, data) in enumerate(packets):
        block.data[at : at + len(data)] = np.frombuffer(data, np.uint8)
        block.offset[n], block.caplen[n], block.wirelen[n] = at, len(data), len(data)
        block.time_ns[n], block.linktype[n] = time_ns, linktype
        at += len(data)
    block.data[at:] = 0
    block.count = len(packets)
    return block


def ethernet(ethertype: int, payload: bytes) -> bytes:
    return bytes.fromhex("020000000001020000000002") + struct.pack("!H", ethertype) + payload


def ipv4(source: int, destination: int, payload: bytes, protocol: int = 17) -> bytes:
    header = struct.pack(
        "!BBHHHBBHII", 0x45, 0, 20 + len(payload), 7, 0, 64, protocol, 0, source, destination
    )
    return ethernet(0x0800, header + payload)


def ipv6(source: int, destination: int, payload: bytes, protocol: int = 17) -> bytes:
    header = struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64)
    addresses = source.to_bytes(16, "big") + destination.to_bytes(16, "big")
    return ethernet(0x86DD, header + addresses + payload)


def udp(source: int, destination: int, data: bytes = b"") -> bytes:
    return struct.pack("!HHHH", source, destination, 8 + len(data), 0) + data


def tcp(
    source: int, destination: int, sequence: int = 0, flags: int = 16, data: bytes = b""
) -> bytes:
    return (
        struct.pack("!HHIIBBHHH", source, destination, sequence, 0, 5 << 4, flags, 512, 0, 0) + data
    )
