"""The traffic of the cookbook: a quarter of an hour in a small office, with what goes wrong there.

``python -m tests.docs.office DIR`` writes it as ``office.pcap``. Frames are built with dpkt.
"""

from __future__ import annotations

import socket
import struct
import sys
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import dpkt
from tests.library.traffic import BASE, tls_hello

GATEWAY, NAMES, ANN, BOB = "10.0.0.1", "10.0.0.53", "10.0.0.11", "10.0.0.12"
CAMERA, PRINTER, EVE = "10.0.0.20", "10.0.0.30", "10.0.0.66"
WEB, SHOP, BACKUP, CALLED = "192.0.2.80", "198.51.100.10", "203.0.113.5", "203.0.113.77"
DEAD, STRANGER = "192.0.2.99", "203.0.113.99"
ANN6, WEB6 = "2001:db8::11", "2001:db8:80::80"

BROADCAST = b"\xff" * 6
FLAGS = {letter: 1 << bit for bit, letter in enumerate("FSRPAU")}


def mac(number: int) -> bytes:
    """The address of a station."""
    return b"\x02\0\0\0\0" + bytes([number])


_STATIONS = {NAMES: 0x53, ANN: 0x11, BOB: 0x12, CAMERA: 0x20, PRINTER: 0x30, EVE: 0x66, ANN6: 0x11}
_ROUTER = 0x01
NEW_CARD = mac(0x99)
"""Bob's network card from minute 8 on."""


@dataclass
class Office:
    """Frames with their times, and the clock of the packets to come.

    Attributes:
        frames: nanoseconds since 1970, and the bytes of a frame.
    """

    frames: list[tuple[int, bytes]] = field(default_factory=list)
    _ids: int = 0

    def frame(self, at: float, data: bytes) -> None:
        """Add a frame ``at`` seconds after the beginning."""
        self.frames.append((BASE * 10**9 + round(at * 1000) * 10**6, data))

    def ip(
        self, at: float, source: str, target: str, protocol: int, payload: bytes, **fields: int
    ) -> None:
        """Add an IP packet; ``fields`` are ttl, tos, id, off (in the header) and vlan."""
        self.frame(at, self.ethernet(source, target, protocol, payload, **fields))

    def ethernet(
        self, source: str, target: str, protocol: int, payload: bytes, **fields: int
    ) -> bytes:
        """A frame around an IP packet."""
        self._ids = (self._ids + 7) & 0xFFFF
        packet = ip_packet(source, target, protocol, payload, {"id": self._ids} | fields)
        kind = 0x86DD if ":" in source else 0x0800
        tag = struct.pack(">HH", 0x8100, fields["vlan"]) if "vlan" in fields else b""
        to = BROADCAST if target.endswith(".255") else station(target)
        to = b"\x01\0\x5e\0\0\xfb" if target.startswith("224.") else to
        sender = NEW_CARD if fields.get("new_card") else station(source)
        return to + sender + tag + struct.pack(">H", kind) + packet

    def udp(
        self,
        at: float,
        source: tuple[str, int],
        target: tuple[str, int],
        data: bytes,
        **fields: int,
    ) -> None:
        """Add a datagram."""
        header = struct.pack(">HHHH", source[1], target[1], 8 + len(data), 0)
        self.ip(at, source[0], target[0], 17, header + data, **fields)

    def tcp(
        self,
        at: float,
        source: tuple[str, int],
        target: tuple[str, int],
        flags: str,
        data: bytes = b"",
        *,
        seq: int = 0,
        ack: int = 0,
        window: int = 8192,
        **fields: int,
    ) -> None:
        """Add a segment."""
        bits = sum(FLAGS[letter] for letter in flags)
        header = struct.pack(
            ">HHIIBBHHH", source[1], target[1], seq, ack, 5 << 4, bits, window, 0, 0
        )
        self.ip(at, source[0], target[0], 6, header + data, **fields)

    def lookup(
        self,
        at: float,
        client: str,
        name: str,
        *,
        delay: float = 0.01,
        rcode: int = 0,
        kind: int = 1,
        address: str = WEB,
    ) -> None:
        """A client asks for a name and is answered."""
        number = round(at * 10) & 0xFFFF
        port = 20000 + number % 1000
        asked = dpkt.dns.DNS(id=number, qd=[dpkt.dns.DNS.Q(name=name, type=kind)], op=0x0100)
        self.udp(at, (client, port), (NAMES, 53), bytes(asked))
        said = dpkt.dns.DNS(id=number, qd=asked.qd, op=0x8180 | rcode)
        if not rcode:
            record = dpkt.dns.DNS.RR(name=name, type=kind, ttl=60)
            record.rdata = ip_address(address).packed
            if kind == dpkt.dns.DNS_A:
                record.ip = record.rdata
            else:
                record.ip6 = record.rdata
            said.an = [record]
        self.udp(at + delay, (NAMES, 53), (client, port), bytes(said))

    def handshake(
        self, at: float, client: tuple[str, int], server: tuple[str, int], delay: float
    ) -> float:
        """A connection is opened, both sides at sequence number 1; the time after that."""
        self.tcp(at, client, server, "S", seq=0)
        self.tcp(at + delay, server, client, "SA", seq=0, ack=1)
        self.tcp(at + delay + 0.001, client, server, "A", seq=1, ack=1)
        return at + delay + 0.002

    def send(
        self,
        at: float,
        source: tuple[str, int],
        target: tuple[str, int],
        segments: int,
        *,
        seq: int = 1,
        size: int = 1400,
        every: float = 0.005,
    ) -> int:
        """Segments of one size, the last with PSH; the sequence number after them."""
        for number in range(segments):
            flags = "PA" if number == segments - 1 else "A"
            data = bytes(size)
            self.tcp(
                at + number * every, source, target, flags, data, seq=seq + number * size, ack=1
            )
        return seq + segments * size


def station(address: str) -> bytes:
    """The link-layer address from which packets of ``address`` come."""
    return mac(_STATIONS.get(address, _ROUTER))


def ip_packet(
    source: str, target: str, protocol: int, payload: bytes, fields: dict[str, int]
) -> bytes:
    """An IP packet of the version of ``source``."""
    if ":" in source:
        packet6 = dpkt.ip6.IP6(
            nxt=protocol, hlim=fields.get("ttl", 64), plen=len(payload), data=payload
        )
        packet6.src, packet6.dst = (socket.inet_pton(socket.AF_INET6, a) for a in (source, target))
        return bytes(packet6)
    header = struct.pack(
        ">BBHHHBBH4s4s",
        0x45,
        fields.get("tos", 0),
        20 + len(payload),
        fields["id"],
        fields.get("off", 0),
        fields.get("ttl", 64),
        protocol,
        0,
        socket.inet_aton(source),
        socket.inet_aton(target),
    )
    return header + payload


def people(office: Office) -> None:
    """Ann reads and shops, Bob makes a backup and telephones."""
    office.lookup(1, ANN, "www.example.org")
    start = office.handshake(1.5, (ANN, 40001), (WEB, 80), 0.02)
    request = b"GET /news HTTP/1.1\r\nHost: www.example.org\r\n\r\n"
    office.tcp(start, (ANN, 40001), (WEB, 80), "PA", request, seq=1, ack=1)
    office.send(start + 0.08, (WEB, 80), (ANN, 40001), 20)
    for again in (4, 9):
        # lost on the way to Ann, behind this capture
        at = start + 0.4 + again / 100
        data = bytes(1400)
        office.tcp(at, (WEB, 80), (ANN, 40001), "A", data, seq=1 + again * 1400, ack=1)
    office.tcp(start + 1, (ANN, 40001), (WEB, 80), "FA", seq=len(request) + 1, ack=28001)
    office.tcp(start + 1.02, (WEB, 80), (ANN, 40001), "FA", seq=28001, ack=len(request) + 2)

    office.lookup(10, ANN, "shop.example.com", delay=0.25, address=SHOP)
    tls(office, 10.5, (ANN, 40002), (SHOP, 443), b"shop.example.com", delay=0.15, segments=60)
    tls(office, 30, (ANN, 40003), (SHOP, 443), b"shop.example.com", delay=0.13, segments=30)
    office.lookup(33, BOB, "www.example.org")
    for number in range(3):
        office.lookup(40 + number, BOB, "nowhere.example.org", rcode=3)

    # Bob's backup, whose server cannot keep up
    office.lookup(61, BOB, "backup.example.net", address=BACKUP)
    start = office.handshake(61.5, (BOB, 41000), (BACKUP, 873), 0.04)
    office.send(start, (BOB, 41000), (BACKUP, 873), 400, every=0.01)
    for number in range(5):
        at = start + 1 + number
        office.tcp(at, (BACKUP, 873), (BOB, 41000), "A", seq=1, ack=140001, window=0)
    office.tcp(start + 5, (BOB, 41000), (BACKUP, 873), "FA", seq=560001, ack=1)

    # a server without the service, and one that is not there
    office.tcp(70, (BOB, 41001), (PRINTER, 22), "S", seq=0)
    office.tcp(70.001, (PRINTER, 22), (BOB, 41001), "RA", seq=0, ack=1)
    for number, at in enumerate((71, 72, 74)):
        office.tcp(at, (BOB, 41002), (DEAD, 443), "S", seq=0, id=900 + number)

    # a call: 20 ms between packets, and a hiccup
    at = 80.0
    for number in range(100):
        office.udp(at, (BOB, 7078), (STRANGER, 7080), bytes(160), tos=46 << 2, id=1000 + number)
        at += 0.1 if number == 50 else 0.02

    # IPv6
    office.lookup(180.5, ANN, "www.example.org", kind=28, address=WEB6)
    tls(office, 181, (ANN6, 40004), (WEB6, 443), b"www.example.org", delay=0.03, segments=25)


def tls(
    office: Office,
    at: float,
    client: tuple[str, int],
    server: tuple[str, int],
    name: bytes,
    *,
    delay: float,
    segments: int,
) -> None:
    """A connection with a hello, and what the server sends."""
    start = office.handshake(at, client, server, delay)
    hello = tls_hello(name)
    office.tcp(start, client, server, "PA", hello, seq=1, ack=1)
    office.send(start + delay, server, client, segments)
    office.tcp(start + delay + 2, client, server, "FA", seq=1 + len(hello), ack=segments * 1400 + 1)


def attacks(office: Office) -> None:
    """Eve scans and floods; a camera calls home, and speaks through names; strangers knock."""
    for number in range(40):
        port = 8000 + number
        office.tcp(120 + number * 0.05, (EVE, 50000), (WEB, port), "S", seq=number)
        if number != 22:
            office.tcp(120.01 + number * 0.05, (WEB, port), (EVE, 50000), "RA", ack=number + 1)
    for number in range(25):
        office.tcp(125 + number * 0.1, (EVE, 50001), (f"10.0.1.{number + 1}", 445), "S")
    for number in range(3):
        office.tcp(128 + number, (EVE, 50002), (WEB, 80), "FPU", seq=number)
    for number in range(150):
        office.tcp(140 + number * 0.05, (f"198.18.0.{number + 1}", 1024 + number), (WEB, 80), "S")
    for number in range(13):
        at = 60 * number + 7
        office.tcp(at, (CAMERA, 42000 + number), (CALLED, 8443), "S", seq=1)
        office.tcp(at + 0.09, (CALLED, 8443), (CAMERA, 42000 + number), "RA", seq=0, ack=2)
    for number in range(12):
        # 48 letters that are not a word
        label = f"{number:02d}" + "deadbeef" * 5 + "cafe00"
        office.lookup(330 + number, CAMERA, f"{label}.t.example.net", delay=0.03)
    for number in range(5):
        office.tcp(360 + number, (STRANGER, 60000 + number), (BOB, 22), "S")
        office.tcp(360.001 + number, (BOB, 22), (STRANGER, 60000 + number), "RA", ack=1)
    start = office.handshake(370, (BOB, 43000), (PRINTER, 23), 0.002)
    office.tcp(start, (BOB, 43000), (PRINTER, 23), "PA", b"admin\r\n", seq=1, ack=1)


def link(office: Office) -> None:
    """What stations and routers say: ARP, DHCP, broadcasts, ICMP, VLANs, tunnels, fragments."""
    for at, sender, address in ((0.5, _ROUTER, GATEWAY), (45, 0x66, GATEWAY), (1.2, 0x11, ANN)):
        arp = dpkt.arp.ARP(
            op=2,
            sha=mac(sender),
            spa=socket.inet_aton(address),
            tha=mac(0x12),
            tpa=socket.inet_aton(BOB),
        )
        office.frame(at, BROADCAST + mac(sender) + b"\x08\x06" + bytes(arp))
    for at, server in ((0.1, GATEWAY), (0.2, EVE)):
        # BOOTREPLY for the station of Ann
        answer = struct.pack(">BBBB", 2, 1, 6, 0) + bytes(24) + mac(0x11) + bytes(202)
        answer += b"\x63\x82\x53\x63\x35\x01\x02\xff"
        office.udp(at, (server, 67), ("255.255.255.255", 68), answer)
    for number in range(10):
        office.udp(300 + number, (PRINTER, 138), ("10.0.0.255", 138), bytes(120))
    for number in range(6):
        office.udp(305 + number, (PRINTER, 5353), ("224.0.0.251", 5353), bytes(40))

    ping = struct.pack(">BBHHH", 8, 0, 0, 1, 1) + bytes(56)
    pong = bytes(1) + ping[1:]
    for number in range(10):
        # the route back changes
        ttl = 54 if number < 6 else 57
        office.ip(190 + number * 0.5, ANN, WEB, 1, ping)
        office.ip(190.02 + number * 0.5, WEB, ANN, 1, pong, ttl=ttl)
    quoted = ip_packet(BOB, DEAD, 17, bytes(8), {"id": 1})
    for number in range(4):
        office.ip(196 + number * 0.1, GATEWAY, BOB, 1, b"\x0b\0\0\0\0\0\0\0" + quoted)
    for number in range(12):
        office.ip(197 + number * 0.1, GATEWAY, BOB, 1, b"\x03\x01\0\0\0\0\0\0" + quoted)

    for vlan, count in ((7, 5), (9, 3)):
        for number in range(count):
            at = 315 + number * 0.1 + vlan / 1000
            office.udp(at, (CAMERA, 5000), (PRINTER, 5001), bytes(200), vlan=vlan)
    inner = ip_packet("172.16.0.1", "172.16.0.2", 17, bytes(108), {"id": 5})
    for number in range(4):
        office.ip(316 + number * 0.1, ANN, BACKUP, 47, b"\0\0\x08\0" + inner)
    datagram = struct.pack(">HHHH", 6000, 6001, 8 + 1480 + 592, 0) + bytes(1472)
    office.ip(318, BOB, BACKUP, 17, datagram, off=0x2000, id=77)
    office.ip(318.001, BOB, BACKUP, 17, bytes(600), off=1480 // 8, id=77)
    for number in range(2):
        office.udp(319 + number * 0.1, (SHOP, 4433), (ANN, 40009), bytes(500), tos=3)
    # Bob has a new network card
    office.tcp(490, (BOB, 44000), (WEB, 80), "S", seq=1, new_card=1)
    office.tcp(490.02, (WEB, 80), (BOB, 44000), "SA", seq=1, ack=2)
    office.tcp(490.03, (BOB, 44000), (WEB, 80), "A", seq=2, ack=2, new_card=1)


def frames() -> list[tuple[int, bytes]]:
    """All frames in the order of time."""
    office = Office()
    people(office)
    attacks(office)
    link(office)
    return sorted(office.frames, key=lambda frame: frame[0])


def write_office(folder: Path) -> Path:
    """The traffic as a capture with nanoseconds."""
    path = folder / "office.pcap"
    records = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)]
    for at, data in frames():
        records.append(struct.pack("<IIII", at // 10**9, at % 10**9, len(data), len(data)) + data)
    path.write_bytes(b"".join(records))
    return path


if __name__ == "__main__":
    write_office(Path(sys.argv[1]))
