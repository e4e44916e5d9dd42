"""A small network on one link, with something for each question of the one-liners."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.dns import DNS, DNSQR, DNSRR
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from tests.library.traffic import (
    ANN,
    ANN_MAC,
    BOB,
    BOB_MAC,
    EVE_MAC,
    NAMES,
    WEB,
    arp,
    frame,
    lookup,
    session,
    tcp,
    tls_hello,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.library.traffic import Sent

SIX, SIX_NAMES = "2001:db8::1", "2001:db8::53"
EVE = "192.168.7.9"


def packets() -> Iterator[Sent]:
    """Yield three minutes of packets."""
    yield from _link()
    yield from _names()
    yield from _web()
    yield from _trouble()


def write_network(folder: Path) -> Path:
    """Write the capture ``net.pcap`` into ``folder``."""
    return write(folder / "net.pcap", packets())


def _link() -> Iterator[Sent]:
    """Yield ARP, DHCP, pings, a VLAN and a fragmented datagram."""
    yield arp(0.1)
    yield (
        0.2,
        Ether(src=BOB_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, psrc=BOB, hwsrc=BOB_MAC, pdst=ANN),
    )
    broadcast = IP(src="0.0.0.0", dst="255.255.255.255", ttl=16) / UDP(sport=68, dport=67)
    discover = DHCP(options=[("message-type", "discover"), "end"])
    everyone = "ff:ff:ff:ff:ff:ff"
    yield 0.5, frame(broadcast / BOOTP(op=1, chaddr=b"\2\0\0\0\0\1") / discover, ANN_MAC, everyone)
    for number in range(3):
        ping = ICMP(type=8, id=3, seq=number) / b"0123456789"
        pong = ICMP(type=0, id=3, seq=number) / b"0123456789"
        yield 4 + number, frame(IP(src=ANN, dst=BOB, ttl=64) / ping)
        yield 4.001 + number, frame(IP(src=BOB, dst=ANN, ttl=63) / pong, BOB_MAC, ANN_MAC)
    unreachable = ICMP(type=3, code=1) / IP(src=ANN, dst="203.0.113.5") / UDP(sport=9, dport=9)
    yield 9, frame(IP(src=WEB, dst=ANN, ttl=50) / unreachable)
    yield 10, frame(IPv6(src=SIX, dst="2001:db8::2", hlim=64) / ICMPv6EchoRequest(data=b"six"))
    for number in range(4):
        datagram = IP(src=EVE, dst=BOB, ttl=32) / UDP(sport=6000, dport=6001) / bytes(300 + number)
        yield 20 + number * 15, Ether(src=EVE_MAC, dst=BOB_MAC) / Dot1Q(vlan=100) / datagram
    whole = UDP(sport=7000, dport=7001, len=1508, chksum=0) / bytes(1500)
    begin, end = bytes(whole)[:1000], bytes(whole)[1000:]
    yield 70, frame(IP(src=EVE, dst=ANN, id=77, flags="MF", proto=17) / begin)
    yield 70.001, frame(IP(src=EVE, dst=ANN, id=77, frag=125, proto=17) / end)


def _names() -> Iterator[Sent]:
    """Yield queries for names and their answers, over both versions of IP."""
    yield from lookup(1)
    yield from lookup(61, "mail.example.com", rcode=3)
    yield from lookup(62, "www.example.com")
    yield from lookup(122, "www.example.com")
    question = DNSQR(qname="v6.example.com", qtype="AAAA")
    ask = IPv6(src=SIX, dst=SIX_NAMES) / UDP(sport=5400, dport=53)
    reply = IPv6(src=SIX_NAMES, dst=SIX) / UDP(sport=53, dport=5400)
    record = DNSRR(rrname="v6.example.com", type="AAAA", rdata="2001:db8::80")
    yield 63, frame(ask / DNS(id=8, qd=question))
    yield 63.02, frame(reply / DNS(id=8, qr=1, qd=question, an=[record]))
    yield 64, frame(IP(src=BOB, dst=NAMES) / UDP(sport=5500, dport=53) / DNS(id=9, qd=question))


def _web() -> Iterator[Sent]:
    """Yield pages over HTTP and TLS."""
    yield from session(2)
    yield from session(65, 40001)
    post = b"POST /form HTTP/1.1\r\nHost: shop.example.net\r\nContent-Length: 3\r\n\r\na=1"
    yield 66, tcp(BOB, 41000, WEB, 80, "PA", post, seq=1, ack=1)
    for number, name in enumerate((b"api.example.org", b"api.example.org", b"cdn.example.net")):
        hello = tls_hello(name)
        port = 42000 + number
        yield 80 + number, tcp(BOB, port, WEB, 443, "S", seq=0)
        yield 80.01 + number, tcp(WEB, 443, BOB, port, "SA", seq=0, ack=1)
        yield 80.02 + number, tcp(BOB, port, WEB, 443, "A", seq=1, ack=1)
        yield 80.03 + number, tcp(BOB, port, WEB, 443, "PA", hello, seq=1, ack=1)
        body = b"\x17\x03\x03\x02\x58" + bytes(600)
        yield 80.05 + number, tcp(WEB, 443, BOB, port, "PA", body, seq=1, ack=1 + len(hello))


def _trouble() -> Iterator[Sent]:
    """Yield opened connections that are refused or unanswered, and repeated segments."""
    for number in range(5):
        yield 100 + number, tcp(ANN, 50000 + number, WEB, 22 + number, "S", seq=9)
        if number % 2:
            yield 100.01 + number, tcp(WEB, 22 + number, ANN, 50000 + number, "RA", ack=10)
    data = b"x" * 40
    for at in (110, 110.3, 110.9):
        yield at, tcp(BOB, 43000, ANN, 8080, "PA", data, seq=500, ack=1)
    six = IPv6(src=SIX, dst=SIX_NAMES, hlim=9) / TCP(sport=44000, dport=443, flags="S", seq=1)
    yield 130, frame(six)
    yield 131, frame(six.copy())
    yield 150, tcp(ANN, 51000, EVE, 22, "A", b"", seq=3, ack=4)


if __name__ == "__main__":
    write_network(Path(sys.argv[1]))
