"""Made traces that are hard for queries: what repeats, crosses a border of time, or stays open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.dns import DNS, DNSQR, DNSRR
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from tests.library.traffic import ANN, BOB, EVE_MAC, NAMES, WEB, frame, lookup, session, tcp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.library.traffic import Sent


def lost_handshakes() -> Iterator[Sent]:
    """Eight handshakes; in some of them the SYN, the SYN-ACK, or both are sent three times."""
    for number in range(8):
        port, sequence = 42000 + number, (1 << 32) - 1 if number == 7 else 1000 * number
        up, down = (ANN, port, WEB, 80), (WEB, 80, ANN, port)
        begin = 10 + 16 * number
        after = 0.06 + number / 1000
        for resent in (0, 1, 3) if number % 2 else (0,):
            yield begin + resent, tcp(*up, "S", seq=sequence)
        for resent in (0, 3, 9) if number % 4 else (0,):
            answer = tcp(*down, "SA", seq=7, ack=(sequence + 1) & 0xFFFFFFFF)
            yield begin + after + resent, answer
    # attempts that are refused, unanswered, or answered in the next minute
    yield 200, tcp(ANN, 43000, WEB, 81, "S", seq=5)
    yield 200.1, tcp(WEB, 81, ANN, 43000, "RA", ack=6)
    yield 210, tcp(ANN, 43001, WEB, 82, "S", seq=5)
    yield 239.9, tcp(ANN, 43002, WEB, 80, "S", seq=5)
    yield 240.2, tcp(WEB, 80, ANN, 43002, "SA", ack=6)
    # an answer to no attempt, and one to an attempt with another sequence number
    yield 250, tcp(WEB, 80, ANN, 43003, "SA", ack=6)
    yield 260, tcp(ANN, 43004, WEB, 80, "S", seq=5)
    yield 260.1, tcp(WEB, 80, ANN, 43004, "SA", ack=7)


def question(at: float, name: str, number: int, port: int = 40053, kind: str = "A") -> Sent:
    """Ask for a name."""
    layers = IP(src=ANN, dst=NAMES) / UDP(sport=port, dport=53)
    return at, frame(layers / DNS(id=number, qd=DNSQR(qname=name, qtype=kind)))


def reply(at: float, name: str, number: int, port: int = 40053, kind: str = "A") -> Sent:
    """Answer with a record."""
    layers = IP(src=NAMES, dst=ANN) / UDP(sport=53, dport=port)
    record = DNSRR(rrname=name, type=kind, rdata=WEB if kind == "A" else "2001:db8::80")
    return at, frame(
        layers / DNS(id=number, qr=1, qd=DNSQR(qname=name, qtype=kind), an=[record, record])
    )


def slow_names() -> Iterator[Sent]:
    """Pairs of A and AAAA, answers in the next minute, questions asked again."""
    for number, begin in enumerate((5.0, 59.8, 119.95)):
        name = f"pair{number}.example"
        yield question(begin, name, 2 * number)
        yield question(begin + 0.0001, name, 2 * number + 1, kind="AAAA")
        yield reply(begin + 0.25, name, 2 * number)
        yield reply(begin + 0.31, name, 2 * number + 1, kind="AAAA")
    # asked twice; one quick and one slow answer; the answer repeated
    yield question(200, "again.example", 50)
    yield question(205, "again.example", 50)
    yield reply(205.02, "again.example", 50)
    yield reply(205.03, "again.example", 50)
    yield question(210, "quick.example", 51, port=40054)
    yield reply(210.05, "quick.example", 51, port=40054)
    # the id of an earlier question, for another name
    yield question(220, "first.example", 52, port=40055)
    yield reply(220.01, "first.example", 52, port=40055)
    yield question(225, "second.example", 52, port=40055)
    yield reply(225.5, "second.example", 52, port=40055)
    yield reply(230, "nobody-asked.example", 53)
    yield question(235, "unanswered.example", 54)


def open_connections() -> Iterator[Sent]:
    """Connections that end, are reset, pause for minutes, and are open when the trace ends."""
    for number in range(20):
        yield from session(2 + 9.7 * number, 44000 + number)
    for number in range(12):
        up = (ANN, 45000 + number, WEB, 80)
        yield 100 + number, tcp(*up, "S", seq=0)
        yield 170 + number, tcp(*up, "A", seq=1)
        yield 230 + number, tcp(*up, "PA", b"more", seq=1)
    # FIN at the end of a minute; what follows belongs to the same connection
    yield 59.9, tcp(ANN, 46000, WEB, 80, "FA", seq=9)
    yield 60.1, tcp(ANN, 46000, WEB, 80, "A", seq=10)
    # silent for more than a minute
    yield 5, tcp(ANN, 46001, WEB, 80, "A", seq=9)
    yield 190, tcp(ANN, 46001, WEB, 80, "A", seq=9)


def sent_again() -> Iterator[Sent]:
    """Retransmissions across a minute, of SYN and FIN; keep-alives, which are none."""
    up = (ANN, 47000, WEB, 80)
    yield 50, tcp(*up, "S", seq=0)
    yield 51, tcp(*up, "S", seq=0)
    yield 59.9, tcp(*up, "PA", b"across", seq=1)
    yield 60.2, tcp(*up, "PA", b"across", seq=1)
    yield 61, tcp(*up, "PA", b"longer now", seq=1)
    yield 62, tcp(*up, "A", seq=11)
    yield 62.1, tcp(*up, "A", seq=11)
    yield 63, tcp(*up, "FA", seq=11)
    yield 64, tcp(*up, "FA", seq=11)
    idle = (ANN, 47001, WEB, 80)
    yield 10, tcp(*idle, "PA", b"hello", seq=1)
    for number in range(11):
        yield 11 + 10 * number, tcp(*idle, "A", b"o", seq=5)
        yield 11.5 + 10 * number, tcp(*idle, "A", seq=5)
    # the same numbers the other way are another flow
    yield 12, tcp(WEB, 80, ANN, 47001, "PA", b"hello", seq=1)
    # an hour later a port and its numbers are used again
    yield 400, tcp(*up, "S", seq=0)


def flood_beside_a_connection() -> Iterator[Sent]:
    """A thousand SYNs towards a server that one client talks to all the time."""
    for number in range(120):
        yield 1 + number / 20, tcp(BOB, 48000, WEB, 443, "A", seq=1 + number)
    for number in range(1000):
        source = f"10.2.{number // 200}.{number % 200 + 1}"
        yield 2 + number / 200, tcp(source, 1024 + number % 7, WEB, 443, "S", seq=number)
    # a flood from one port, whose owner resets what it did not ask for
    for number in range(150):
        yield 31 + number / 50, tcp(BOB, 48001, WEB, 444, "S", seq=number)
        yield 31.001 + number / 50, tcp(BOB, 48001, WEB, 444, "R", seq=number + 1)
    # a busy server: many attempts that all go on
    for number in range(300):
        up = (f"10.3.0.{number % 200 + 1}", 2000 + number, WEB, 445)
        yield 51 + number / 100, tcp(*up, "S", seq=1)
        yield 51.01 + number / 100, tcp(*up, "A", seq=2)


def leases() -> Iterator[Sent]:
    """A DHCP server that answers three clients by broadcast, and one by unicast."""
    for number in range(4):
        hardware = bytes([2, 0, 0, 0, 1, number])
        target = "255.255.255.255" if number < 3 else "10.0.0.77"
        for kind in ("offer", "ack"):
            message = BOOTP(op=2, chaddr=hardware) / DHCP(options=[("message-type", kind), "end"])
            layers = IP(src=BOB, dst=target) / UDP(sport=67, dport=68) / message
            yield 1 + number, frame(layers, EVE_MAC, "ff:ff:ff:ff:ff:ff")
    # a client on both ports is not a server
    asked = BOOTP(op=1, chaddr=bytes(6)) / DHCP(options=[("message-type", "discover"), "end"])
    yield 9, frame(IP(src=ANN, dst="255.255.255.255") / UDP(sport=67, dport=68) / asked)


def regular_voice() -> Iterator[Sent]:
    """A stream whose packets cross tens of seconds and the end of their identifications."""
    at = 5.0
    for number in range(600):
        at += 0.02 if number % 5 else 0.035
        numbered = IP(src=ANN, dst=BOB, id=(65300 + number) & 0xFFFF)
        yield at, frame(numbered / UDP(sport=7078, dport=7080) / bytes(160))
    for number in range(40):
        # identifications that do not move
        yield 6 + number / 10, frame(IP(src=BOB, dst=ANN, id=0) / UDP(sport=9, dport=9) / b"x")


def over_ipv6() -> Iterator[Sent]:
    """A handshake and a lookup over IPv6."""
    ann, web = "2001:db8::1", "2001:db8::80"
    up = IPv6(src=ann, dst=web) / TCP(sport=50000, dport=443, flags="S", seq=9)
    down = IPv6(src=web, dst=ann) / TCP(sport=443, dport=50000, flags="SA", seq=1, ack=10)
    yield 1, frame(up)
    yield 1.125, frame(down)
    asked = IPv6(src=ann, dst=web) / UDP(sport=50000, dport=53)
    said = IPv6(src=web, dst=ann) / UDP(sport=53, dport=50000)
    yield 2, frame(asked / DNS(id=9, qd=DNSQR(qname="six.example", qtype="AAAA")))
    yield 2.5, frame(said / DNS(id=9, qr=1, rcode=2, qd=DNSQR(qname="six.example", qtype="AAAA")))


def made() -> dict[str, list[Sent]]:
    """Return the traces by what they contain."""
    return {
        "handshakes with losses": list(lost_handshakes()),
        "slow names": list(slow_names()),
        "names that fail": [*lookup(1, "a.example", 3), *lookup(2, "b.example", 5, 0.2)],
        "open connections": list(open_connections()),
        "segments sent again": list(sent_again()),
        "flood beside a connection": list(flood_beside_a_connection()),
        "DHCP by broadcast": list(leases()),
        "regular voice": list(regular_voice()),
        "over IPv6": list(over_ipv6()),
    }
