"""No field of a packet exceeds the bound that the analysis of sums relies on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from tests.capture.packet.packet_forge import packets

from gscope.capture.packet.dissector.dissect import dissect
from gscope.queries.catalog.protocols import PROTOCOLS
from gscope.queries.catalog.scalar.magnitudes import magnitude
from gscope.queries.expressions.expressions import PacketField
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from tests.capture.packet.kernel_reader import RawPacket

BOUNDS = {
    field.name: magnitude(PacketField(field.name, GsqlType.INT, is_nullable=True))
    for protocol in PROTOCOLS.values()
    for field in (*protocol.fields, *protocol.inner)
    if field.expression.type is GsqlType.INT
}


def check(data: bytes, linktype: int, wirelen: int) -> set[str]:
    fields, _ = dissect(data, linktype=linktype, wirelen=wirelen, time_ns=1)
    known = {n: v for n, v in fields.items() if n in BOUNDS and isinstance(v, int)}
    assert {name: value for name, value in known.items() if value > BOUNDS[name]} == {}
    return set(known)


@settings(max_examples=150, deadline=None)
@given(packets())
def test_fields_of_forged_packets_are_within_their_bounds(packet: RawPacket) -> None:
    check(packet.data, packet.linktype, packet.wirelen)


def test_fields_of_all_ones_are_within_their_bounds() -> None:
    ethernet = b"\xff" * 12
    seen: set[str] = set()
    for protocol in (1, 6, 17, 58):
        v4 = b"\x4f" + b"\xff" * 8 + bytes([protocol]) + b"\xff" * 2000
        whole = b"\x4f\xff\xff\xff\xff\xff\xc0\x00\xff" + v4[9:]
        v6 = b"\x6f" + b"\xff" * 5 + bytes([protocol]) + b"\xff" * 2000
        tagged = b"\x81\x00\xff\xff\x81\x00\xff\xff\x08\x00"
        for frame in (b"\x08\x00" + v4, tagged + whole, b"\x86\xdd" + v6):
            seen |= check(ethernet + frame, 1, (1 << 31) - 1)
    seen |= check(ethernet + b"\x08\x06" + b"\xff" * 60, 1, 74)
    assert {"offset", "window", "udp_length", "type", "op", "vlan", "total_length"} <= seen
