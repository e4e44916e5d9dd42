"""The traffic over which the examples of ``docs/gsql.md`` are answered.

``python -m tests.docs.traffic DIR`` writes it as the two captures ``up.pcap`` and ``down.pcap``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import IPv6
from tests.library.traffic import ANN, BOB, WEB, Sent, arp, frame, lookup, session, tcp, write

REQUEST = b"GET /index.html HTTP/1.1\r\nHost: www.example.org\r\n\r\n"


def up_and_down() -> dict[str, list[Sent]]:
    """What the hosts of a network send by the name of their link, and what they get."""
    near = (ANN, BOB, "2001:db8::1")
    sent: dict[str, list[Sent]] = {"up": [arp(0.1)], "down": []}
    for at, packet in _packets():
        source = packet.payload.src
        sent["up" if source in near else "down"].append((at, packet))
    return sent


def write_links(folder: Path) -> dict[str, list[Path]]:
    """The traffic as captures in ``folder``, by the name of their interface."""
    return {name: [write(folder / f"{name}.pcap", sent)] for name, sent in up_and_down().items()}


def _packets() -> list[Sent]:
    """Three minutes of IP: names, web pages, a server that does not answer, a ping."""
    knock = tcp(BOB, 50000, WEB, 443, "S", seq=7)
    six = IPv6(src="2001:db8::1", dst="2001:db8::53") / UDP(sport=5353, dport=53) / b"what?"
    return [
        *lookup(1),
        *session(1.5),
        (10, knock),
        (13, knock.copy()),
        *lookup(61, "www.example.com", rcode=3, delay=0.2),
        *session(61.5, 40001, delay=0.3),
        # the request of the second session, once more
        (61.83, tcp(ANN, 40001, WEB, 80, "PA", REQUEST, seq=1, ack=1001)),
        (125, frame(IP(src=ANN, dst=WEB) / ICMP(type=8, id=9, seq=1) / b"ping")),
        (125.02, frame(IP(src=WEB, dst=ANN) / ICMP(type=0, id=9, seq=1) / b"ping")),
        (130, frame(six)),
    ]


if __name__ == "__main__":
    write_links(Path(sys.argv[1]))
