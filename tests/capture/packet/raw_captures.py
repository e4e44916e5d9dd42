"""A minimal reader of pcap and pcapng, so that decoding is tested apart from the packet sources."""

from __future__ import annotations

import csv
import gzip
import struct
from collections import Counter
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from tests.capture.packet.kernel_reader import RawPacket
from tests.support.requirements import EXPECTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

Flow = tuple[int, int, int, str, str, int, int]


def read_capture(path: Path) -> list[RawPacket]:
    """All whole packets; a file that is not a capture has none."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:4] == b"\x0a\x0d\x0d\x0a":
        return list(_pcapng(data))
    scales = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}
    for order in "<>":
        if len(data) >= 24 and struct.unpack_from(order + "I", data)[0] in scales:
            scale = scales[struct.unpack_from(order + "I", data)[0]]
            return list(_pcap(data, order, scale))
    return []


def _pcap(data: bytes, order: str, scale: int) -> Iterator[RawPacket]:
    linktype = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
    at = 24
    while at + 16 <= len(data):
        seconds, fraction, caplen, wirelen = struct.unpack_from(order + "IIII", data, at)
        if at + 16 + caplen > len(data):
            return
        time_ns = seconds * 10**9 + fraction * scale
        yield RawPacket(linktype, data[at + 16 : at + 16 + caplen], wirelen, time_ns)
        at += 16 + caplen


def _pcapng(data: bytes) -> Iterator[RawPacket]:
    order, at = "<", 0
    interfaces: list[tuple[int, int]] = []
    while at + 12 <= len(data):
        if data[at : at + 4] == b"\x0a\x0d\x0d\x0a":
            order = "<" if data[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces = []
        kind, length = struct.unpack_from(order + "II", data, at)
        if length < 12 or at + length > len(data):
            return
        body = data[at + 8 : at + length - 4]
        if kind == 1:
            interfaces.append((struct.unpack_from(order + "H", body)[0], _units(body, order)))
        elif kind == 6:
            interface, high, low, caplen, wirelen = struct.unpack_from(order + "IIIII", body)
            linktype, units = interfaces[interface]
            time_ns = (high << 32 | low) * 10**9 // units
            yield RawPacket(linktype, body[20 : 20 + caplen], wirelen, time_ns)
        at += length


def _units(body: bytes, order: str) -> int:
    at = 8
    while at + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, at)
        if code == 9:
            power = body[at + 4]
            return int(2 ** (power & 127) if power & 128 else 10**power)
        at += 4 + (length + 3) // 4 * 4
    return 10**6


def expected_flows(path: Path) -> dict[Flow, tuple[int, int]]:
    with (EXPECTED / f"{path.name}.flows.csv").open(newline="") as lines:
        return {
            (
                int(row["tb"]),
                int(row["ipversion"]),
                int(row["protocol"]),
                str(ip_address(row["srcIP"])),
                str(ip_address(row["destIP"])),
                int(row["srcPort"]),
                int(row["destPort"]),
            ): (int(row["cnt"]), int(row["bytes"]))
            for row in csv.DictReader(lines)
        }


def flows_of(fields: Iterable[Mapping[str, int | bytes | None]]) -> dict[Flow, tuple[int, int]]:
    """Flows per 10 seconds of decoded packets, as in ``../shared/expected``."""
    counts: Counter[Flow] = Counter()
    sizes: Counter[Flow] = Counter()
    for row in fields:
        if row["ipversion"] is None:
            continue
        names = ("time", "ipversion", "protocol", "srcIP", "destIP", "srcPort", "destPort", "len")
        values = [row[name] for name in names]
        time, version, protocol, source, target, source_port, target_port, length = (
            value for value in values if isinstance(value, int)
        )
        flow = (
            time // 10,
            version,
            protocol,
            _address(source, version),
            _address(target, version),
            source_port,
            target_port,
        )
        counts[flow] += 1
        sizes[flow] += length
    return {flow: (count, sizes[flow]) for flow, count in counts.items()}


def _address(value: int, version: int) -> str:
    return str(ip_address(value & 0xFFFFFFFF) if version == 4 else IPv6Address(value))
