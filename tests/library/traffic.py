"""Hand-made captures for the queries of the library.

What each looks for, and ordinary traffic without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scapy.layers.dhcp import BOOTP
from scapy.layers.dns import DNS, DNSQR, DNSRR
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6TimeExceeded, IPv6
from scapy.layers.l2 import ARP, GRE, Dot1Q, Ether
from scapy.utils import PcapWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from scapy.packet import Packet

BASE = 1_699_999_200
"""The beginning of an hour, in seconds since 1970."""

ANN, BOB, WEB, NAMES = "10.0.0.1", "10.0.0.2", "192.0.2.80", "192.0.2.53"
ANN_MAC, BOB_MAC, EVE_MAC = (f"02:00:00:00:00:{n:02x}" for n in (1, 2, 3))

Sent = tuple[float, "Packet"]
"""Seconds after ``BASE``, and a frame."""


def write(path: Path, sent: Iterable[Sent]) -> Path:
    """The frames as a capture with nanoseconds."""
    with PcapWriter(str(path), linktype=1, nano=True) as writer:
        writer.write_header(None)
        for at, frame in sorted(sent, key=lambda pair: pair[0]):
            # a decimal fraction of a second is not a binary one
            frame.time = BASE + round(at * 1000) / 1000
            data = bytes(frame)
            nanoseconds = BASE * 10**9 + round(at * 1000) * 10**6
            writer.write_packet(data, sec=nanoseconds // 10**9, usec=nanoseconds % 10**9)
    return path


def frame(layers: Packet, source: str = ANN_MAC, target: str = BOB_MAC) -> Packet:
    """A frame around an IP packet."""
    return Ether(src=source, dst=target) / layers


def tcp(
    source: str, sport: int, target: str, dport: int, flags: str, data: bytes = b"", **fields: Any
) -> Packet:
    """A TCP packet in a frame."""
    return frame(
        IP(src=source, dst=target) / TCP(sport=sport, dport=dport, flags=flags, **fields) / data
    )


def session(at: float, sport: int = 40000, port: int = 80, delay: float = 0.02) -> Iterator[Sent]:
    """Ann opens a connection to the web server, asks and is answered, and both say goodbye."""
    up, down = (ANN, sport, WEB, port), (WEB, port, ANN, sport)
    request = b"GET /index.html HTTP/1.1\r\nHost: www.example.org\r\n\r\n"
    answer = b"HTTP/1.1 200 OK\r\n\r\nhello"
    asked, answered = 1 + len(request), 1001 + len(answer)
    yield at, tcp(*up, "S", seq=0)
    yield at + delay, tcp(*down, "SA", seq=1000, ack=1)
    yield at + delay + 0.01, tcp(*up, "A", seq=1, ack=1001)
    yield at + delay + 0.02, tcp(*up, "PA", request, seq=1, ack=1001)
    yield at + delay + 0.05, tcp(*down, "PA", answer, seq=1001, ack=asked)
    yield at + delay + 0.06, tcp(*up, "FA", seq=asked, ack=answered)
    yield at + delay + 0.07, tcp(*down, "FA", seq=answered, ack=asked + 1)
    yield at + delay + 0.08, tcp(*up, "A", seq=asked + 1, ack=answered + 1)


def lookup(
    at: float, name: str = "www.example.org", rcode: int = 0, delay: float = 0.01
) -> Iterator[Sent]:
    """Ann asks for a name and is answered."""
    question = DNSQR(qname=name)
    answers = [] if rcode else [DNSRR(rrname=name, rdata=WEB)]
    up = IP(src=ANN, dst=NAMES) / UDP(sport=5353, dport=53)
    down = IP(src=NAMES, dst=ANN) / UDP(sport=53, dport=5353)
    yield at, frame(up / DNS(id=7, qd=question))
    yield at + delay, frame(down / DNS(id=7, qr=1, rcode=rcode, qd=question, an=answers))


def arp(at: float, address: str = ANN, mac: str = ANN_MAC) -> Sent:
    """A station announces its addresses."""
    return at, Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / ARP(
        op=2, psrc=address, hwsrc=mac, pdst=BOB, hwdst=BOB_MAC
    )


def ordinary() -> list[Sent]:
    """Two people at work: nothing that an alarm should ring for."""
    return [
        arp(0.1),
        arp(0.2, BOB, BOB_MAC),
        *lookup(1),
        *session(1.5),
        *lookup(20),
        *session(21, 40001),
        (30, frame(IP(src=ANN, dst=BOB) / ICMP(type=8) / b"ping")),
        (30.01, frame(IP(src=BOB, dst=ANN) / ICMP(type=0) / b"ping")),
    ]


def scan(ports: Iterable[int], hosts: Iterable[str] = (WEB,)) -> list[Sent]:
    """Bob knocks at every port of every host."""
    pairs = [(host, port) for host in hosts for port in ports]
    return [
        (1 + n * 0.1, tcp(BOB, 50000 + n, host, port, "S")) for n, (host, port) in enumerate(pairs)
    ]


def tls_hello(name: bytes) -> bytes:
    """A TLS record with a ClientHello that asks for a server by name."""
    entry = b"\x00" + len(name).to_bytes(2, "big") + name
    names = len(entry).to_bytes(2, "big") + entry
    extension = b"\x00\x00" + len(names).to_bytes(2, "big") + names
    extensions = len(extension).to_bytes(2, "big") + extension
    body = b"\x03\x03" + bytes(32) + b"\x00" + b"\x00\x02\x13\x01" + b"\x01\x00" + extensions
    hello = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + len(hello).to_bytes(2, "big") + hello


def voice(gaps: Iterable[float], sport: int = 7078) -> list[Sent]:
    """A stream of UDP packets with consecutive identifications."""
    at, sent = 1.0, []
    for number, gap in enumerate([0.0, *gaps]):
        at += gap
        layers = IP(src=ANN, dst=BOB, id=100 + number) / UDP(sport=sport, dport=7080) / bytes(160)
        sent.append((at, frame(layers)))
    return sent


def tunnelled() -> Packet:
    """A packet in a GRE tunnel."""
    return frame(
        IP(src=ANN, dst=WEB)
        / GRE()
        / IP(src="172.16.0.1", dst="172.16.0.2")
        / UDP(sport=1, dport=2)
        / b"inside"
    )


def offer() -> Packet:
    """An answer of a DHCP server."""
    return frame(
        IP(src=BOB, dst="255.255.255.255") / UDP(sport=67, dport=68) / BOOTP(op=2), EVE_MAC
    )


def tagged() -> Packet:
    """A frame of VLAN 7."""
    return Ether(src=ANN_MAC, dst=BOB_MAC) / Dot1Q(vlan=7) / IP(src=ANN, dst=BOB) / UDP() / b"tag"


def exceeded() -> list[Sent]:
    """Routers whose patience is over."""
    late4 = IP(src="10.9.9.9", dst=ANN) / ICMP(type=11) / IP(src=ANN, dst=WEB)
    late6 = IPv6(src="2001:db8::9", dst="2001:db8::1") / ICMPv6TimeExceeded() / b"packet"
    return [(1, frame(late4)), (2, frame(late6))]


def unreachable(count: int) -> list[Sent]:
    """A router that reports again and again."""
    report = IP(src="10.9.9.9", dst=ANN) / ICMP(type=3, code=1) / IP(src=ANN, dst=WEB)
    return [(1 + n * 0.1, frame(report.copy())) for n in range(count)]
