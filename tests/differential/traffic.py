"""Small random traffic: few hosts and ports, so that groups and joins meet.

Silence, disorder, odd packets.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any

from tests.differential.addresses import numbered
from tests.reference.reference import decode_ethernet

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from random import Random

Row = dict[str, Any]
SECOND_NS = 10**9
_START_NS = 1_700_000_000 * SECOND_NS

HOSTS4 = (0x0A000001, 0x0A000002, 0xC0A80107, 0x08080808)
HOSTS6 = tuple(
    int(IPv6Address(text)) for text in ("2001:db8::1", "fd00::2", "2001:db8::1", "::ffff:10.0.0.1")
)
"""One of them is the v4-mapped address of an IPv4 host."""
ADDRESSES = (
    *(numbered(IPv4Address(host)) for host in HOSTS4),
    *(numbered(IPv6Address(host)) for host in HOSTS6[1:]),
)
PORTS = (53, 80, 443, 5000)
_ALL_HEADERS = 14 + 8 + 60 + 60
"""More than the headers of Ethernet, IP and TCP can have."""

PAYLOADS = (b"", b"GET /a HTTP/1.1", b"Host: example", b"\x00\xff~", b"12", b"100%_\\")


@dataclass(frozen=True, slots=True)
class Known:
    """Values that are in the traffic, so that comparisons with constants now and then hold."""

    addresses: tuple[int, ...] = ADDRESSES
    ports: tuple[int, ...] = PORTS


@dataclass(frozen=True, slots=True)
class Packet:
    """A frame as it is in a capture."""

    interface: str
    time_ns: int
    wirelen: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Traffic:
    """What comes on the interfaces, in the order in which it comes.

    Attributes:
        skew_ns: by how much a packet may be behind those before it on its interface.
    """

    interfaces: tuple[str, ...]
    packets: tuple[Packet, ...]
    skew_ns: int

    def write(self, folder: Path) -> dict[str, list[Path]]:
        """A capture for each interface."""
        files = {}
        for interface in self.interfaces:
            files[interface] = [folder / f"{interface}.pcap"]
            with files[interface][0].open("wb") as file:
                file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
                for p in self.packets:
                    if p.interface == interface:
                        seconds, rest = divmod(p.time_ns, SECOND_NS)
                        file.write(struct.pack("<IIII", seconds, rest, len(p.data), p.wirelen))
                        file.write(p.data)
        return files

    def decoded(self) -> tuple[dict[str, list[Row]], dict[str, int]]:
        """The fields of the packets of each interface that are not late, and how many are."""
        rows: dict[str, list[Row]] = {interface: [] for interface in self.interfaces}
        late = dict.fromkeys(self.interfaces, 0)
        latest: dict[str, int] = {}
        for packet in self.packets:
            before = latest.get(packet.interface, packet.time_ns)
            if packet.time_ns < before - self.skew_ns:
                late[packet.interface] += 1
                continue
            latest[packet.interface] = max(before, packet.time_ns)
            rows[packet.interface].append(_fields(packet))
        return rows, late


def _fields(packet: Packet) -> Row:
    """By names of GSQL, addresses as numbers."""
    row = decode_ethernet(packet.data) | {
        "interface": packet.interface.encode(),
        "time": packet.time_ns // SECOND_NS,
        "timestamp": packet.time_ns,
        "time_ns": packet.time_ns,
        "len": packet.wirelen,
        "caplen": len(packet.data),
    }
    for name in ("srcMAC", "destMAC"):
        row[name] = int(row[name].replace(":", ""), 16)
    for name in ("srcIP", "destIP"):
        if name in row:
            row[name] = numbered(row[name])
    if "tos" in row:
        row |= {"dscp": row["tos"] >> 2, "ecn": row["tos"] & 3}
    row.pop("inner", None)
    return row


def random_traffic(random: Random) -> Traffic:
    """Some dozen packets on one to three interfaces; one of them may be nearly silent."""
    interfaces = ("alpha", "beta", "gamma")[: random.choice((1, 2, 2, 3))]
    weights = [random.choice((1, 5, 5, 0.05)) for _ in interfaces]
    skew_ns = random.choice((0, SECOND_NS // 10, 2 * SECOND_NS, 10 * SECOND_NS))
    clock = _START_NS + random.randrange(100 * SECOND_NS)
    packets = []
    sequence = random.choice((1, 1000, 2**32 - 5))
    for _ in range(random.choice((0, 3, 20, 40, 40, 60, 60, 90, 90, 90))):
        clock += _gap(random)
        sequence += random.choice((0, 1, 1, 1, 100))
        behind = 0
        if random.random() < 0.15:
            behind = random.randrange(skew_ns + 1)
        elif random.random() < 0.04:
            behind = skew_ns + random.randrange(1, 5 * SECOND_NS)
        (interface,) = random.choices(interfaces, weights)
        data = _frame(random, sequence % 2**32)
        if random.random() < 0.2:
            data = data.ljust(60, b"\0")
        packet = Packet(interface, clock - behind, len(data), data)
        packets.append(_cut(random, packet))
    return Traffic(interfaces, tuple(packets), skew_ns)


def on_interfaces(random: Random, frames: Sequence[tuple[int, int, bytes]]) -> Traffic:
    """Packets of one link as if they came on one to three interfaces.

    Each is (time, length on the wire, bytes).
    """
    interfaces = ("alpha", "beta", "gamma")[: random.choice((1, 2, 2, 3))]
    weights = [random.choice((1, 5, 5, 0.05)) for _ in interfaces]
    skew_ns = random.choice((0, SECOND_NS // 10, 2 * SECOND_NS, 10 * SECOND_NS))
    packets = []
    for time_ns, wirelen, data in frames:
        (interface,) = random.choices(interfaces, weights)
        is_cut = random.random() < 0.1
        kept = data[: random.randrange(_ALL_HEADERS, 400)] if is_cut else data
        packets.append(Packet(interface, time_ns, wirelen, kept))
    return Traffic(interfaces, tuple(packets), skew_ns)


def _gap(random: Random) -> int:
    """Nothing, moments, whole seconds, and now and then a long silence."""
    return random.choice(
        (
            *(0, 1, random.randrange(SECOND_NS), random.randrange(SECOND_NS)),
            *(SECOND_NS, random.randrange(3 * SECOND_NS)),
            random.randrange(60 * SECOND_NS) if random.random() < 0.2 else 5,
        )
    )


def _cut(random: Random, packet: Packet) -> Packet:
    """Captured with a short snap length, behind the TCP header at the earliest."""
    is_plain_v4 = packet.data[12:14] == b"\x08\x00"
    least = 14 + 20 + 20 if is_plain_v4 else 14 + 4 + 40 + 20
    if random.random() > 0.1 or len(packet.data) <= least:
        return packet
    return replace(packet, data=packet.data[: random.randrange(least, len(packet.data))])


def _frame(random: Random, sequence: int) -> bytes:
    kind = random.choices(("v4", "v6", "arp", "other"), (12, 4, 1, 1))[0]
    macs = bytes([2, 0, 0, 0, 0, random.randrange(2)]) + bytes([2, 0, 0, 0, 1, random.randrange(2)])
    tag = struct.pack(">HH", 0x8100, random.choice((5, 7))) if random.random() < 0.1 else b""
    head = macs + tag
    if kind == "other":
        return head + struct.pack(">H", 0x88B5) + bytes(46)
    if kind == "arp":
        hosts = random.choice(HOSTS4), random.choice(HOSTS4)
        body = struct.pack(">HHBBH", 1, 0x0800, 6, 4, random.choice((1, 2)))
        body += macs[6:] + struct.pack(">I", hosts[0]) + macs[:6] + struct.pack(">I", hosts[1])
        return head + struct.pack(">H", 0x0806) + body
    protocol, transport = _transport(random, sequence)
    tos, ttl = random.choice((0, 0, 0x2E << 2, 3)), random.choice((64, 64, 63, 1))
    if kind == "v6":
        source, target = random.choice(HOSTS6), random.choice(HOSTS6)
        word = 6 << 28 | tos << 20 | random.choice((0, 77))
        ip = struct.pack(">IHBB", word, len(transport), protocol, ttl)
        ip += source.to_bytes(16, "big") + target.to_bytes(16, "big")
        return head + struct.pack(">H", 0x86DD) + ip + transport
    fragment = random.choices((0, 0x4000, 0x2000, 0x2000 | 8, 16), (10, 5, 1, 1, 1))[0]
    ip = struct.pack(
        ">BBHHHBBHII",
        *(0x45, tos, 20 + len(transport), random.randrange(1, 4), fragment, ttl, protocol, 0),
        *(random.choice(HOSTS4), random.choice(HOSTS4)),
    )
    return head + struct.pack(">H", 0x0800) + ip + transport


def _transport(random: Random, sequence: int) -> tuple[int, bytes]:
    ports = random.choice(PORTS), random.choice(PORTS)
    payload = random.choice(PAYLOADS)
    kind = random.choices((6, 17, 1, 47), (12, 5, 1, 0))[0]
    if kind == 6:
        flags = random.choice((0x02, 0x12, 0x10, 0x18, 0x11, 0x04, 0xFF))
        acknowledged = max(0, sequence - random.choice((0, 1, 5)))
        window = random.choice((0, 512, 65535))
        header = struct.pack(
            ">HHIIBBHHH", *ports, sequence, acknowledged, 0x50, flags, window, 0, 0
        )
        return 6, header + payload
    if kind == 17:
        return 17, struct.pack(">HHHH", *ports, 8 + len(payload), 0) + payload
    return kind, struct.pack(">BBHHH", 8, 0, 0, 1, sequence & 0xFFFF) + payload
