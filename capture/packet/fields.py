"""Protocol fields as source text, by which generated kernels compute them from records.

A snippet is an expression over these variables, all int64:

- defined by the code around the snippet: ``record`` (address of the packet's record, see
  ``record.py``), ``base`` (address of the packet), ``caplen``, ``wirelen``, ``time_ns``,
  ``linktype``;
- derived, see ``VARIABLES``; ``bindings`` returns the assignments that a set of snippets needs, in
  order.

Fields of flow records are loaded from the packet itself, see ``flow/layout.py``.

``inner.*`` fields have the same snippets over the record that ``locate_inner`` fills: their derived
variables carry the prefix ``inner_`` and are derived from ``inner_record``.

Every snippet may be evaluated for any packet without reading memory outside it; its value is
meaningful only if the field is not NULL.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from gscope.capture.packet.flow.layout import ADDRESS_BYTES, FLOW_FIELDS, LINKTYPE_FLOW
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.capture.packet.flow.layout import FlowField

INNER = "inner_"
"""Prefix of the variables of ``inner.*`` fields."""

FLOW = "flow."
"""Prefix of the names of fields of flow records, of which some are also fields of packets."""

VARIABLES: dict[str, str] = {
    "flow": f"select(linktype == {LINKTYPE_FLOW}, -1, 0)",
    "l3": "ld64(record)",
    "payload": "ld64(record + 8)",
    "pend": "ld64(record + 16)",
    "info": "ld64(record + 24)",
    "link": "ld64(record + 32)",
    "protocol": "info & 255",
    "version": "(info >> 8) & 15",
    "has_ports": "(info >> 12) & 1",
    "is_arp": "(info >> 13) & 1",
    "more_fragments": "(info >> 14) & 1",
    "ethertype": "(info >> 16) & 0xFFFF",
    "fragment_offset": "(info >> 32) & 0x1FFF",
    "reason": "(info >> 48) & 255",
    "l4": "select(fragment_offset == 0, payload, pend)",
    "destination_mac": "link & 0xFFFF",
    "source_mac": "(link >> 16) & 0xFFFF",
    "vlan": "(link >> 32) & 0xFFFF",
    "inner_tag": "(link >> 48) & 0xFFFF",
    "header_length": "transport_length(version, protocol, l4, pend)",
    "data_address": "data_begin(version, protocol, fragment_offset, payload, header_length, pend)",
}
"""Derived variables, each after those that it uses. ``l4`` is ``pend`` without a transport
header."""


_PLAIN = {
    "flow": "0",
    "destination_mac": "0",
    "source_mac": "6",
    "vlan": "0xFFFF",
    "inner_tag": "0xFFFF",
    "is_arp": "0",
    "more_fragments": "0",
    "fragment_offset": "0",
    "reason": "0",
}
PLAIN_VARIABLES: dict[int, dict[str, str]] = {
    version: {
        "l3": "base + 14",
        "payload": f"base + {14 + header_bytes}",
        "protocol": f"ld8(l3 + {protocol})",
        "version": str(version),
        "has_ports": "carries_ports(protocol)",
        "pend": pend,
        "ethertype": ethertype,
        **_PLAIN,
        "l4": "payload",
        "header_length": VARIABLES["header_length"],
        "data_address": VARIABLES["data_address"],
    }
    for version, header_bytes, protocol, pend, ethertype in (
        (4, 20, 9, "min(base + caplen, l3 + be16(l3 + 2))", "0x0800"),
        (6, 40, 6, "min(base + caplen, payload + be16(l3 + 4))", "0x86DD"),
    )
}
"""The same variables for plain packets (see ``fast_path.py``) of each IP version, without a
record."""


class FieldKind(Enum):
    """The int64 values of a field."""

    INTEGER = "integer"
    """One value; MAC addresses are 48-bit integers, times are nanoseconds or seconds."""
    IP = "ip"
    """Two values: high and low half of the address, as ``queries/catalog/scalar/addresses.py``
    defines it."""
    BYTES = "bytes"
    """Two values: address and length of bytes in the packet."""


@dataclass(frozen=True, slots=True)
class Code:
    """The code of a field.

    Attributes:
        value: one expression, or two for kinds IP and BYTES.
        null: condition under which the field of a member packet is NULL; None for never.
    """

    value: tuple[str, ...]
    null: str | None = None


@dataclass(frozen=True, slots=True)
class PacketFieldCode:
    """A field with its code.

    Attributes:
        name: canonical name, with the prefix ``inner.`` for the first encapsulated IP packet and
            ``flow.`` for flow records.
        protocols: GSQL protocols that declare the field.
        kind: kind of its values.
        member: condition under which a packet has the field; the field is NULL otherwise. None for
            every packet.
        v4: code if ``version`` is 4; None if it is always NULL then.
        v6: code if ``version`` is 6. The same object as ``v4`` if the version makes no difference;
            then the code also holds for packets without IP, if ``member`` admits them.
    """

    name: str
    protocols: tuple[str, ...]
    kind: FieldKind
    member: str | None
    v4: Code | None
    v6: Code | None

    @property
    def is_inner(self) -> bool:
        """Whether the field needs ``locate_inner``."""
        return self.name.startswith("inner.")

    @property
    def is_versioned(self) -> bool:
        """Whether IPv4 and IPv6 need different code."""
        return self.v4 is not self.v6


MEMBERS: dict[str, str | None] = {
    "PKT": None,
    "IP": "version != 0",
    "IPV4": "version == 4",
    "IPV6": "version == 6",
    "TCP": "protocol == 6",
    "UDP": "protocol == 17",
    "ICMP": "is_icmp(version, protocol)",
    "ARP": "is_arp != 0",
    "FLOW": "flow != 0",
}
"""The condition for packets of each GSQL protocol (``protocol`` is 0 in records without IP)."""

_MAPPED = "281470681743360"  # ::ffff:0.0.0.0, low half


def _field(protocol: str, name: str, value: str, null: str | None = None) -> PacketFieldCode:
    code = Code((value,), null)
    return PacketFieldCode(name, (protocol,), FieldKind.INTEGER, MEMBERS[protocol], code, code)


def _mac(name: str, offset: str) -> PacketFieldCode:
    # NOWHERE is not an offset: 64 KB further on is outside the packet.
    value = f"lshr(be64(base + select({offset} == 0xFFFF, 0, {offset})), 16)"
    return _field("PKT", name, value, f"{offset} == 0xFFFF")


def _versioned(name: str, v4: str | None, v6: str | None) -> PacketFieldCode:
    codes = [None if value is None else Code((value,)) for value in (v4, v6)]
    return PacketFieldCode(name, ("IP",), FieldKind.INTEGER, MEMBERS["IP"], *codes)


def _address(name: str, v4: str, v6: str) -> PacketFieldCode:
    return PacketFieldCode(
        name,
        ("IP",),
        FieldKind.IP,
        MEMBERS["IP"],
        Code(("0", f"{_MAPPED} | be32({v4})")),
        Code((f"be64({v6})", f"ipv6_low(be64({v6}), be64({v6} + 8))")),
    )


def _arp_address(name: str, at: str) -> PacketFieldCode:
    code = Code(("0", f"{_MAPPED} | be32({at})"), _NOT_ETHERNET_ARP)
    return PacketFieldCode(name, ("ARP",), FieldKind.IP, MEMBERS["ARP"], code, code)


def _bytes(protocol: str, name: str, begin: str, length: str, null: str) -> PacketFieldCode:
    code = Code((begin, length), null)
    return PacketFieldCode(name, (protocol,), FieldKind.BYTES, MEMBERS[protocol], code, code)


def _flag(name: str, bit: int) -> PacketFieldCode:
    return _field("TCP", name, f"(ld8(l4 + 13) >> {bit}) & 1", "l4 + 14 > pend")


_NOT_ETHERNET_ARP = "l3 + 28 > pend or be16(l3 + 4) != 0x0604"
_NO_ECHO = "l4 + 8 > pend or not has_echo_header(version, ld8(l4))"
_DATA_LENGTH = Code(
    ("max(0, ip_end(version, l3, base + wirelen) - l4 - header_length)",),
    "header_length == 0",
)

_OUTER_FIELDS = (
    _field("PKT", "time", "time_ns // 1000000000"),
    _field("PKT", "timestamp", "time_ns"),
    _field("PKT", "time_ns", "time_ns"),
    _field("PKT", "len", "wirelen"),
    _field("PKT", "caplen", "caplen"),
    _field("PKT", "linktype", "linktype"),
    _mac("srcMAC", "source_mac"),
    _mac("destMAC", "destination_mac"),
    _field("PKT", "ethertype", "ethertype", "ethertype == 0"),
    _field("PKT", "vlan", "vlan", "vlan == 0xFFFF"),
    _field("PKT", "inner_vlan", "inner_tag", "inner_tag == 0xFFFF"),
    _field("ARP", "op", "be16(l3 + 6)"),
    _field("ARP", "senderMAC", "lshr(be64(l3 + 8), 16)", _NOT_ETHERNET_ARP),
    _arp_address("senderIP", "l3 + 14"),
    _field("ARP", "targetMAC", "lshr(be64(l3 + 18), 16)", _NOT_ETHERNET_ARP),
    _arp_address("targetIP", "l3 + 24"),
)

_IP_FIELDS = (
    _field("IP", "ipversion", "version"),
    _address("srcIP", "l3 + 12", "l3 + 8"),
    _address("destIP", "l3 + 16", "l3 + 24"),
    _field("IP", "protocol", "protocol"),
    _versioned("ttl", "ld8(l3 + 8)", "ld8(l3 + 7)"),
    _versioned("tos", "ld8(l3 + 1)", "(be16(l3) >> 4) & 255"),
    _versioned("dscp", "ld8(l3 + 1) >> 2", "(be16(l3) >> 6) & 63"),
    _versioned("ecn", "ld8(l3 + 1) & 3", "(be16(l3) >> 4) & 3"),
    _versioned("total_length", "be16(l3 + 2)", "be16(l3 + 4) + 40"),
    _versioned("header_length", "(ld8(l3) & 15) << 2", "40"),
    _versioned("id", "be16(l3 + 4)", None),
    _field("IP", "offset", "fragment_offset << 3"),
    _field("IP", "more_fragments", "more_fragments"),
    _versioned("dont_fragment", "(ld8(l3 + 6) >> 6) & 1", None),
    _versioned("flow_label", None, "be32(l3) & 0xFFFFF"),
    _field("IP", "srcPort", "be16(l4) & -has_ports"),
    _field("IP", "destPort", "be16(l4 + 2) & -has_ports"),
    _bytes("IP", "data", "data_address", "pend - data_address", "data_address < 0"),
    _field("TCP", "sequence_number", "be32(l4 + 4)", "l4 + 8 > pend"),
    _field("TCP", "ack_number", "be32(l4 + 8)", "l4 + 12 > pend"),
    _field("TCP", "flags", "ld8(l4 + 13)", "l4 + 14 > pend"),
    *(
        _flag(name, bit)
        for bit, name in enumerate(("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"))
    ),
    _field("TCP", "window", "be16(l4 + 14)", "l4 + 16 > pend"),
    PacketFieldCode(
        "data_length",
        ("TCP", "UDP"),
        FieldKind.INTEGER,
        "(protocol == 6 or protocol == 17)",
        _DATA_LENGTH,
        _DATA_LENGTH,
    ),
    _bytes("TCP", "TCP_data", "data_address", "pend - data_address", "header_length == 0"),
    _field("UDP", "udp_length", "be16(l4 + 4)", "l4 + 6 > pend"),
    _bytes("UDP", "UDP_data", "l4 + 8", "udp_data_length(l4, pend)", "header_length == 0"),
    _field("ICMP", "type", "ld8(l4)", "l4 + 1 > pend"),
    _field("ICMP", "code", "ld8(l4 + 1)", "l4 + 2 > pend"),
    _field("ICMP", "icmp_id", "be16(l4 + 4)", _NO_ECHO),
    _field("ICMP", "icmp_seq", "be16(l4 + 6)", _NO_ECHO),
)


def _flow_field(field: FlowField) -> PacketFieldCode:
    """Return the code of a field of flow records, which are packets of a fixed layout.

    ``flow`` is -1 in these, and 0 in other packets, of which only the first word is loaded.
    """
    parts = range(field.offset, field.offset + field.width, 8)
    load = {1: "ld8", 2: "ld16", 4: "ld32"}.get(field.width, "ld64")
    code = Code(
        tuple(f"{load}(base + ({part} & flow))" for part in parts),
        None if field.is_certain else f"(ld64(base) >> {field.bit}) & 1 == 0",
    )
    kind = FieldKind.IP if field.width == ADDRESS_BYTES else FieldKind.INTEGER
    name = f"{FLOW}{field.name}"
    return PacketFieldCode(name, ("FLOW",), kind, MEMBERS["FLOW"], code, code)


_VARIABLE = re.compile(rf"\b({'|'.join((*VARIABLES, 'record'))})\b(?!\()")


def _for_inner(text: str) -> str:
    return _VARIABLE.sub(lambda match: INNER + match[0], text)


def _inner_code(code: Code | None) -> Code | None:
    if code is None:
        return None
    null = None if code.null is None else _for_inner(code.null)
    return Code(tuple(_for_inner(value) for value in code.value), null)


def _inner_field(field: PacketFieldCode) -> PacketFieldCode:
    v4 = _inner_code(field.v4)
    v6 = _inner_code(field.v6) if field.is_versioned else v4
    member = _for_inner(field.member or "version != 0")
    return replace(field, name=f"inner.{field.name}", member=member, v4=v4, v6=v6)


FIELDS: dict[str, PacketFieldCode] = {
    field.name: field
    for field in (
        *_OUTER_FIELDS,
        *_IP_FIELDS,
        *(_inner_field(field) for field in _IP_FIELDS),
        *(_flow_field(field) for field in FLOW_FIELDS),
    )
}
"""All fields by canonical name, except ``interface``, which is a constant of the stream."""

_ALL_VARIABLES = VARIABLES | {
    INNER + name: _for_inner(expression) for name, expression in VARIABLES.items()
}


def bindings(snippets: Iterable[str], plain: int | None = None) -> list[tuple[str, str]]:
    """Return the derived variables of ``snippets``, as (variable, expression) in order.

    The caller defines all other names.

    Args:
        snippets: snippets of fields; for plain packets, not of inner fields.
        plain: IP version of plain packets; None for packets with a record.
    """
    variables = _ALL_VARIABLES if plain is None else PLAIN_VARIABLES[plain]
    needed: set[str] = set()
    waiting = list(snippets)
    while waiting:
        names = set(re.findall(r"\b[a-z]\w*\b(?!\()", waiting.pop()))
        found = (names & variables.keys()) - needed
        needed |= found
        waiting += [variables[name] for name in found]
    return [item for item in variables.items() if item[0] in needed]
