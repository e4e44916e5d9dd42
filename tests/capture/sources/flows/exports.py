"""Datagrams of NetFlow v5, NetFlow v9 and IPFIX, and captures of them, built by hand."""

from __future__ import annotations

import struct
from ipaddress import ip_address
from typing import TYPE_CHECKING

from tests.capture.sources.files.capture_bytes import NANO, pcap_header, pcap_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RAW = 101
"""The link type of packets without a link layer."""
EXPORTER = "192.0.2.1"
EXPORTED_S = 1_700_000_000
UPTIME_MS = 5_000_000


def udp_packet(payload: bytes, source: str = EXPORTER, port: int = 2055) -> bytes:
    sender = ip_address(source).packed
    udp = struct.pack(">4H", 40000, port, 8 + len(payload), 0) + payload
    if len(sender) == 16:
        return struct.pack(">IHBB", 6 << 28, len(udp), 17, 64) + sender * 2 + udp
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0)
    return head + sender + ip_address("192.0.2.200").packed + udp


def capture_of(packets: Iterable[bytes], step_ns: int = 1_000_000) -> bytes:
    """A pcap of packets, the first at ``EXPORTED_S``, each ``step_ns`` after the one before."""
    times = (divmod(EXPORTED_S * 10**9 + n * step_ns, 10**9) for n in range(1 << 30))
    records = (pcap_record(data, *at) for data, at in zip(packets, times, strict=False))
    return pcap_header(magic=NANO, linktype=RAW) + b"".join(records)


def v5(
    records: Sequence[bytes],
    sequence: int = 0,
    *,
    interval: int = 0,
    engine: int = 0,
    count: int | None = None,
) -> bytes:
    count = len(records) if count is None else count
    head = (5, count, UPTIME_MS, EXPORTED_S, 500_000_000, sequence, engine, 1 << 14 | interval)
    return struct.pack(">2H4I2H", *head) + b"".join(records)


def v5_record(
    source: str = "10.0.0.1",
    destination: str = "10.0.0.2",
    ports: tuple[int, int] = (1234, 80),
    protocol: int = 6,
    counts: tuple[int, int] = (3, 300),
) -> bytes:
    addresses = (ip_address(a).packed for a in (source, destination, "10.9.9.9"))
    return b"".join(addresses) + struct.pack(
        ">2H4I2H4B2H2B2x",
        *(7, 8, *counts, UPTIME_MS - 2000, UPTIME_MS - 500, *ports),
        *(0, 0x1B, protocol, 0x28, 64512, 64513, 24, 16),
    )


def v9(sets: Sequence[bytes], sequence: int = 0, domain: int = 1, count: int = 1) -> bytes:
    return struct.pack(">2H4I", 9, count, UPTIME_MS, EXPORTED_S, sequence, domain) + b"".join(sets)


def ipfix(sets: Sequence[bytes], sequence: int = 0, domain: int = 1) -> bytes:
    body = b"".join(sets)
    return struct.pack(">2H3I", 10, 16 + len(body), EXPORTED_S, sequence, domain) + body


def set_of(number: int, content: bytes, padding: int = 0) -> bytes:
    return struct.pack(">2H", number, 4 + len(content) + padding) + content + bytes(padding)


def fields_of(fields: Iterable[tuple[int, ...]]) -> bytes:
    """Specifiers of (element, length), or (element, length, enterprise)."""
    packed = []
    for element, length, *enterprise in fields:
        packed.append(struct.pack(">2H", element | (0x8000 if enterprise else 0), length))
        packed += [struct.pack(">I", number) for number in enterprise]
    return b"".join(packed)


def template(number: int, fields: Sequence[tuple[int, ...]]) -> bytes:
    return struct.pack(">2H", number, len(fields)) + fields_of(fields)


def v9_options(
    number: int, scopes: Sequence[tuple[int, int]], fields: Sequence[tuple[int, int]]
) -> bytes:
    sizes = struct.pack(">3H", number, 4 * len(scopes), 4 * len(fields))
    return sizes + fields_of(scopes) + fields_of(fields)


def ipfix_options(number: int, scopes: int, fields: Sequence[tuple[int, ...]]) -> bytes:
    return struct.pack(">3H", number, len(fields), scopes) + fields_of(fields)
