"""Datagrams of sFlow version 5 built by hand, and a slow reader of them in plain Python."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

import dpkt
from tests.capture.sources.flows.collector import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.capture.sources.flows.collector import Record

AGENT = "198.51.100.9"
UPTIME_MS = 77_000


def datagram(
    samples: Sequence[bytes],
    sequence: int = 0,
    *,
    agent: str = AGENT,
    sub_agent: int = 0,
    count: int | None = None,
) -> bytes:
    count = len(samples) if count is None else count
    head = struct.pack(">4I", sub_agent, sequence, UPTIME_MS, count)
    return struct.pack(">I", 5) + address(agent) + head + b"".join(samples)


def address(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">I", 0)
    packed = ip_address(text).packed
    return struct.pack(">I", 1 if len(packed) == 4 else 2) + packed


def item(kind: int, content: bytes) -> bytes:
    return struct.pack(">2I", kind, len(content)) + content


def sample(
    records: Sequence[bytes], rate: int = 512, interfaces: tuple[int, int] = (3, 4)
) -> bytes:
    head = struct.pack(">8I", 1, 3, rate, 5120, 0, *interfaces, len(records))
    return item(1, head + b"".join(records))


def expanded(
    records: Sequence[bytes],
    rate: int = 512,
    interfaces: tuple[int, int, int, int] = (0, 3, 0, 4),
) -> bytes:
    head = struct.pack(">11I", 1, 0, 3, rate, 5120, 0, *interfaces, len(records))
    return item(3, head + b"".join(records))


def counters() -> bytes:
    return item(2, struct.pack(">3I", 1, 3, 1) + item(1, bytes(88)))


def header(frame: bytes, length: int | None = None, protocol: int = 1) -> bytes:
    length = len(frame) + 4 if length is None else length
    padding = bytes(-len(frame) % 4)
    return item(1, struct.pack(">4I", protocol, length, 4, len(frame)) + frame + padding)


def sampled_ipv4(flags: int = 0x12, protocol: int = 6) -> bytes:
    addresses = ip_address("10.1.0.1").packed + ip_address("10.1.0.2").packed
    numbers = struct.pack(">2I", 640, protocol)
    return item(3, numbers + addresses + struct.pack(">4I", 5000, 443, flags, 0x48))


def sampled_ipv6(protocol: int = 17) -> bytes:
    addresses = ip_address("2001:db8::1").packed + ip_address("2001:db8::2").packed
    numbers = struct.pack(">2I", 1280, protocol)
    return item(4, numbers + addresses + struct.pack(">4I", 53, 5353, 0, 0x20))


def switch(vlan: int) -> bytes:
    return item(1001, struct.pack(">4I", vlan, 0, 9, 0))


def router(next_hop: str | None, masks: tuple[int, int] = (24, 16)) -> bytes:
    return item(1002, address(next_hop) + struct.pack(">2I", *masks))


def gateway(source: int, path: Sequence[Sequence[int]]) -> bytes:
    segments = b"".join(struct.pack(f">2I{len(p)}I", 2, len(p), *p) for p in path)
    return item(
        1003,
        address("192.0.2.254")
        + struct.pack(">4I", 64496, source, 64497, len(path))
        + segments
        + struct.pack(">2I", 0, 100),
    )


class _DamagedError(Exception):
    pass


class _Reader:
    """Words of a span of bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise _DamagedError
        self.at += size
        return self.data[self.at - size : self.at]

    def word(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def item(self) -> tuple[int, bytes]:
        kind, length = self.word(), self.word()
        return kind, self.take(length)

    def address(self) -> IPv4Address | IPv6Address | None:
        family = self.word()
        if family == 0:
            return None
        if family > 2:
            raise _DamagedError
        return ip_address(self.take(4 if family == 1 else 16))


def read(data: bytes, arrived_ns: int) -> list[Record | str]:
    """The records of a whole datagram that begins soundly."""
    reader = _Reader(data)
    assert reader.word() == 5
    agent = reader.address()
    assert agent is not None
    sub_agent, _, _, samples = (reader.word() for _ in range(4))
    found: list[Record | str] = []
    for _ in range(samples):
        try:
            kind, content = reader.item()
        except _DamagedError:
            return [*found, MALFORMED]
        if kind in (1, 3):
            try:
                record = _sample(_Reader(content), is_expanded=kind == 3)
            except _DamagedError:
                found.append(MALFORMED)
                continue
            common = {"exporter": agent, "domain": sub_agent, "packets": 1}
            found.append(record | common | {"first": arrived_ns, "last": arrived_ns})
    return found


def _sample(reader: _Reader, *, is_expanded: bool) -> Record:
    reader.take(12 if is_expanded else 8)
    record: Record = {"sampling_interval": max(reader.word(), 1), "srcPort": 0, "destPort": 0}
    reader.take(8)
    for name in ("input_interface", "output_interface"):
        word = reader.word()
        form, index = (word, reader.word()) if is_expanded else (word >> 30, word & 0x3FFFFFFF)
        if form == 0 and index not in (0, 0x3FFFFFFF):
            record[name] = index
    for _ in range(reader.word()):
        kind, content = reader.item()
        _record(kind, _Reader(content), record)
    return record


def _record(kind: int, reader: _Reader, record: Record) -> None:
    if kind == 1:
        protocol, length, _, captured = (reader.word() for _ in range(4))
        frame = reader.take(captured)
        record["bytes"] = length
        if protocol == 1:
            _ethernet(frame, record)
    elif kind == 2:
        record.setdefault("bytes", reader.word())
    elif kind in (3, 4):
        _decoded(reader, 4 if kind == 3 else 6, record)
    elif kind == 1001:
        vlan, _, _, _ = (reader.word() for _ in range(4))
        if vlan <= 0xFFFF:
            record.setdefault("vlan", vlan)
    elif kind == 1002:
        hop = reader.address()
        masks = [min(reader.word(), 255) for _ in range(2)]
        if hop is not None:
            record["next_hop"] = hop
        record["src_mask"], record["dest_mask"] = masks
    elif kind == 1003:
        reader.address()
        _, source, _, segments = (reader.word() for _ in range(4))
        last = None
        for _ in range(segments):
            reader.word()
            for _ in range(reader.word()):
                last = reader.word()
        record["srcAS"] = source
        if last is not None:
            record["destAS"] = last


def _decoded(reader: _Reader, version: int, record: Record) -> None:
    length, protocol = reader.word(), reader.word() & 255
    size = 4 if version == 4 else 16
    addresses = ip_address(reader.take(size)), ip_address(reader.take(size))
    ports = reader.word(), reader.word()
    flags, tos = reader.word() & 255, reader.word() & 255
    if "protocol" in record:
        return
    record.setdefault("bytes", length)
    record |= {"ipversion": version, "protocol": protocol, "tos": tos}
    record["srcIP"], record["destIP"] = addresses
    if protocol in (6, 17, 132):
        record["srcPort"], record["destPort"] = (port & 0xFFFF for port in ports)
    if protocol == 6:
        record["flags"] = flags


def _ethernet(frame: bytes, record: Record) -> None:
    """What dpkt finds in a frame that was sampled whole or up to its transport's header."""
    for name in ("ipversion", "protocol", "tos", "srcIP", "destIP", "flags", "type", "code"):
        record.pop(name, None)
    record["srcPort"] = record["destPort"] = 0
    packet = dpkt.ethernet.Ethernet(frame)
    if getattr(packet, "vlan_tags", None):
        record["vlan"] = packet.vlan_tags[0].id
    ip = packet.data
    if isinstance(ip, dpkt.ip.IP):
        record |= {"ipversion": 4, "protocol": ip.p, "tos": ip.tos}
    elif isinstance(ip, dpkt.ip6.IP6):
        record |= {"ipversion": 6, "protocol": ip.p, "tos": ip.fc}
    else:
        return
    record["srcIP"], record["destIP"] = ip_address(ip.src), ip_address(ip.dst)
    inner = ip.data
    if isinstance(inner, dpkt.tcp.TCP | dpkt.udp.UDP):
        record["srcPort"], record["destPort"] = inner.sport, inner.dport
    if isinstance(inner, dpkt.tcp.TCP):
        record["flags"] = inner.flags
    if isinstance(inner, dpkt.icmp.ICMP | dpkt.icmp6.ICMP6):
        record["type"], record["code"] = inner.type, inner.code
