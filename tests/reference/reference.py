"""A brute-force reference that shares no code with gscope.

scapy reads files, this page decodes packets. A query is a plain function over the list of all
packets (see ``queries.py``): no epochs, no streams, no order, one dictionary. Slow and obvious on
purpose.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any

from scapy.utils import RawPcapNgReader, RawPcapReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

Address = IPv4Address | IPv6Address
Packet = dict[str, Any]
"""The fields of a packet by GSQL name; a field that it does not have is missing."""

Row = tuple[str, ...]

_TAGS = {0x8100, 0x88A8, 0x9100}
_EXTENSIONS = {0, 43, 44, 60}
_FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")


def read_raw(path: Path) -> list[tuple[int, int, bytes]]:
    """All packets of a capture of Ethernet frames.

    Each is (nanoseconds since 1970, length on the wire, bytes).
    """
    with RawPcapReader(str(path)) as reader:
        if isinstance(reader, RawPcapNgReader):
            frames: list[tuple[bytes, Any]] = list(reader)
            assert all(about.linktype == 1 for _, about in frames)
            return [
                ((m.tshigh << 32 | m.tslow) * 10**9 // m.tsresol, m.wirelen, data)
                for data, m in frames
            ]
        assert reader.linktype == 1
        unit = 1 if reader.nano else 1000
        return [(m.sec * 10**9 + m.usec * unit, m.wirelen, data) for data, m in reader]


def read_packets(path: Path, interface: str) -> list[Packet]:
    """All packets of a capture in file order, decoded."""
    return [
        {
            "interface": interface,
            "time": time_ns // 10**9,
            "timestamp": when(time_ns),
            "time_ns": time_ns,
            "len": wirelen,
            "caplen": len(data),
            **decode_ethernet(data),
        }
        for time_ns, wirelen, data in read_raw(path)
    ]


def when(time_ns: int) -> str:
    """A time as text that sorts like time."""
    moment = datetime.fromtimestamp(time_ns // 10**9, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{time_ns % 10**9:09d}Z"


def decode_ethernet(data: bytes) -> Packet:
    """Link layer, IP and transport of an Ethernet frame."""
    packet: Packet = {"destMAC": data[:6].hex(":"), "srcMAC": data[6:12].hex(":")}
    kind, at = struct.unpack_from(">H", data, 12)[0], 14
    tags = []
    while kind in _TAGS:
        tag, kind = struct.unpack_from(">HH", data, at)
        tags.append(tag & 0xFFF)
        at += 4
    packet["ethertype"] = kind
    packet |= dict(zip(("vlan", "inner_vlan"), tags, strict=False))
    if kind == 0x0800:
        packet |= decode_ipv4(data[at:])
    elif kind == 0x86DD:
        packet |= decode_ipv6(data[at:])
    elif kind == 0x0806:
        packet["op"] = struct.unpack_from(">H", data, at + 6)[0]
    return packet


def decode_ipv4(data: bytes) -> Packet:
    """An IPv4 packet, padding of the link layer behind it included."""
    header = (data[0] & 15) * 4
    tos, total, identity, fragment, ttl, protocol = struct.unpack_from(">BHHHBB", data, 1)
    packet: Packet = {
        "ipversion": 4,
        "tos": tos,
        "total_length": total,
        "header_length": header,
        "id": identity,
        "offset": (fragment & 0x1FFF) * 8,
        "more_fragments": fragment >> 13 & 1,
        "dont_fragment": fragment >> 14 & 1,
        "ttl": ttl,
        "protocol": protocol,
        "srcIP": IPv4Address(data[12:16]),
        "destIP": IPv4Address(data[16:20]),
    }
    return packet | decode_transport(packet, data[header : total or None], total - header)


def decode_ipv6(data: bytes) -> Packet:
    """An IPv6 packet; the protocol is the one behind its extension headers."""
    word, length, following, ttl = struct.unpack_from(">IHBB", data)
    packet: Packet = {
        "ipversion": 6,
        "tos": word >> 20 & 255,
        "flow_label": word & 0xFFFFF,
        "total_length": length + 40,
        "header_length": 40,
        "ttl": ttl,
        "srcIP": IPv6Address(data[8:24]),
        "destIP": IPv6Address(data[24:40]),
        "offset": 0,
        "more_fragments": 0,
    }
    end, at = 40 + length, 40
    while following in _EXTENSIONS and packet["offset"] == 0:
        if following == 44:
            fragment = struct.unpack_from(">H", data, at + 2)[0]
            packet["offset"], packet["more_fragments"] = fragment & ~7, fragment & 1
            size = 8
        else:
            size = data[at + 1] * 8 + 8
        following = data[at]
        at += size
    packet["protocol"] = following
    return packet | decode_transport(packet, data[at:end], end - at)


def decode_transport(packet: Packet, data: bytes, size: int) -> Packet:
    """Ports and what is behind them.

    Args:
        data: captured bytes behind the IP header.
        size: how many there were on the wire.
    """
    fields: Packet = {"srcPort": 0, "destPort": 0}
    if packet["offset"]:
        return fields
    protocol = packet["protocol"]
    if protocol in (6, 17, 132) and len(data) >= 4:
        fields["srcPort"], fields["destPort"] = struct.unpack_from(">HH", data)
    if protocol == 6 and len(data) >= 20:
        sequence, acknowledged, header, flags, window = struct.unpack_from(">IIBBH", data, 4)
        header = (header >> 4) * 4
        fields |= {
            "sequence_number": sequence,
            "ack_number": acknowledged,
            "flags": flags,
            "window": window,
            **{name: flags >> bit & 1 for bit, name in enumerate(_FLAGS)},
            "data_length": max(0, size - header),
            "TCP_data": data[header:],
        }
    elif protocol == 17 and len(data) >= 8:
        fields |= {
            "udp_length": struct.unpack_from(">H", data, 4)[0],
            "data_length": max(0, size - 8),
        }
    elif protocol == 47:
        fields["inner"] = decode_gre(data)
    return fields


def decode_gre(data: bytes) -> Packet:
    """The packet inside a GRE packet that carries Ethernet or IP; nothing of it if it is no IP."""
    flags, kind = struct.unpack_from(">HH", data)
    at = 4 + sum(4 for bit in (0x8000, 0x2000, 0x1000) if flags & bit)
    if kind == 0x6558:
        inner = decode_ethernet(data[at:])
    elif kind == 0x0800:
        inner = decode_ipv4(data[at:])
    else:
        return {}
    return inner if "ipversion" in inner else {}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``function`` over the non-NULL values of ``argument`` in a group."""

    function: Callable[[list[Any]], Any]
    argument: Callable[[Packet], Any] = field(default=lambda _: 1)


def group(
    rows: Iterable[Packet],
    keys: Mapping[str, Callable[[Packet], Any]],
    aggregates: Mapping[str, Aggregate],
) -> list[Packet]:
    """One row for each combination of ``keys`` among ``rows``."""
    groups: dict[tuple[Any, ...], list[Packet]] = {}
    for row in rows:
        groups.setdefault(tuple(key(row) for key in keys.values()), []).append(row)
    result = []
    for values, members in groups.items():
        one: Packet = dict(zip(keys, values, strict=True))
        for name, aggregate in aggregates.items():
            arguments = [aggregate.argument(member) for member in members]
            one[name] = aggregate.function([v for v in arguments if v is not None])
        result.append(one)
    return result


def total(values: list[Any]) -> Any:
    """``sum``."""
    return sum(values) if values else None


def least(values: list[Any]) -> Any:
    """``min``; IPv4 addresses come before all others."""
    return min(values, key=order) if values else None


def greatest(values: list[Any]) -> Any:
    """``max``."""
    return max(values, key=order) if values else None


def average(values: list[Any]) -> Any:
    """``avg``."""
    return sum(values) / len(values) if values else None


def distinct(values: list[Any]) -> int:
    """``count_distinct``."""
    return len(set(values))


def duplicates(values: list[Any]) -> int:
    """``count_dups``."""
    return len(values) - len(set(values))


def folded(operation: Callable[[Any, Any], Any]) -> Callable[[list[Any]], Any]:
    """``or_aggr`` and its like."""

    def fold(values: list[Any]) -> Any:
        result = values[0] if values else None
        for value in values[1:]:
            result = operation(result, value)
        return result

    return fold


def order(value: Any) -> Any:
    """What values are sorted by; IPv4 addresses come before all others."""
    if isinstance(value, IPv4Address):
        return int(IPv6Address(f"::ffff:{value}"))
    return int(value) if isinstance(value, IPv6Address) else value


def shown(rows: Iterable[Packet], names: Sequence[str]) -> list[Row]:
    """Rows as text, NULL as nothing."""
    return [tuple(_text(row.get(name)) for name in names) for row in rows]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode("ascii")
    return repr(value) if isinstance(value, float) else str(value)
