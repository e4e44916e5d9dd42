"""What belongs to each query of the library.

A capture that contains what it looks for, the rows, and one without.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from scapy.layers.inet import ICMP, IP, UDP
from tests.library import traffic
from tests.library.traffic import ANN, BASE, BOB, EVE_MAC, NAMES, WEB, frame, tcp
from tests.reference.reference import when

if TYPE_CHECKING:
    from scapy.packet import Packet
    from tests.library.traffic import Sent


def start(seconds: int, later: int = 0) -> str:
    """The start of the minute (60) or hour (3600) of the traffic, or of a later one, as in CSV."""
    return when((BASE // seconds + later) * seconds * 10**9)


MINUTE, TEN, HOUR = start(60), start(10), start(3600)
Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Thing:
    """What a query finds.

    Attributes:
        sent: a capture that contains it.
        rows: the answer, each value as the CSV sink writes it.
        absent: a capture that does not.
    """

    sent: list[Sent]
    rows: list[Row]
    absent: list[Sent] = field(default_factory=traffic.ordinary)


def row(*values: object) -> Row:
    """Values as text."""
    return tuple("" if value is None else str(value) for value in values)


def flood(count: int, going_on: int = 0) -> list[Sent]:
    """Attempts to connect from many addresses, some of which go on, beside a busy connection."""
    clients = [(f"10.1.{n // 200}.{n % 200 + 1}", 1024 + n) for n in range(count)]
    attempts = [(1 + n / 100, tcp(*client, WEB, 80, "S")) for n, client in enumerate(clients)]
    others = [(3 + n / 100, tcp(*client, WEB, 80, "A")) for n, client in enumerate(clients)]
    busy = [(4 + n / 100, tcp(ANN, 999, WEB, 80, "A")) for n in range(200)]
    return [*attempts, *others[:going_on], *busy]


def connection() -> list[Sent]:
    """A connection that is reset in its second minute, and one that falls silent."""
    up, down = (ANN, 40000, WEB, 443), (WEB, 443, ANN, 40000)
    return [
        (10, tcp(*up, "S", seq=1)),
        (11, tcp(*up, "A", seq=2)),
        (75, tcp(*up, "R", seq=2)),
        (20, tcp(*down, "SA", seq=5)),
        # the trace goes on, so that the silent minute is over
        (190, frame(IP(src=BOB, dst=ANN) / UDP(sport=9, dport=9) / b"later")),
    ]


def fragments() -> list[Sent]:
    first = IP(src=ANN, dst=BOB, flags="MF", proto=17) / UDP(sport=1, dport=2, len=24) / bytes(8)
    second = IP(src=ANN, dst=BOB, frag=2, proto=17) / bytes(8)
    return [(1, frame(first)), (2, frame(second))]


def home_calls(minutes: int) -> list[Sent]:
    return [(60 * n + 7, tcp(BOB, 41000 + n, WEB, 8443, "S")) for n in range(minutes)]


def resent() -> list[Sent]:
    flow = (ANN, 40000, WEB, 80)
    return [
        (1, tcp(*flow, "PA", b"one", seq=1)),
        (1.2, tcp(*flow, "PA", b"two", seq=4)),
        (1.5, tcp(*flow, "PA", b"two", seq=4)),
        (1.6, tcp(*flow, "A", seq=7)),
        (1.7, tcp(*flow, "A", seq=7)),
    ]


def hosts(per_hour: list[list[str]]) -> list[Sent]:
    return [
        (3600 * hour + 60 * n, frame(IP(src=host, dst=WEB) / UDP(sport=1, dport=2)))
        for hour, names in enumerate(per_hour)
        for n, host in enumerate(names)
    ]


def strange() -> list[Sent]:
    flags = ["", "SF", "SR", "FPU", "FPU"]
    return [(1 + n, tcp(BOB, 50000, WEB, 20 + n, each)) for n, each in enumerate(flags)]


def to_group() -> Packet:
    """A datagram to a group of IPv4."""
    return frame(IP(src=ANN, dst="224.0.0.251") / UDP(), target="01:00:5e:00:00:fb")


def slow_scan(hosts: int) -> list[Sent]:
    """Bob knocks at one port of a host every ten seconds: fewer than twenty in any minute."""
    return [(1 + 10 * n, tcp(BOB, 50000 + n, f"10.0.3.{n}", 445, "S")) for n in range(hosts)]


def busy_flow_among(others: int, packets: int = 30) -> list[Sent]:
    """Flows of one packet each, then a flow with ``packets`` packets between the last ones."""
    single = [
        (1 + n * 0.04, frame(IP(src=BOB, dst=ANN) / UDP(sport=1024 + n, dport=9)))
        for n in range(others)
    ]
    busy = frame(IP(src=ANN, dst=BOB) / UDP(sport=7, dport=7))
    return [*single, *((42.02 + n * 0.04, busy.copy()) for n in range(packets))]


def flows_of_two_minutes() -> list[Sent]:
    """Three flows, of 1,042, 142 and 142 bytes, and in the next minute the small ones again."""
    sizes = {1: 1000, 2: 100, 3: 100}
    flows = {
        sport: frame(IP(src=ANN, dst=WEB) / UDP(sport=sport, dport=2) / bytes(size))
        for sport, size in sizes.items()
    }
    return [*((n, flows[n]) for n in sizes), *((60 + n, flows[n].copy()) for n in (2, 3))]


EMPTY: list[Sent] = []
NO_IP = [traffic.arp(1)]
UDP_28 = frame(IP(src=ANN, dst=BOB) / UDP(sport=1, dport=2))
"""42 bytes on the wire."""


@cache
def things() -> dict[str, Thing]:
    """Return what each query finds, made on first use: scapy takes seconds for the floods."""
    return {
        "arp_conflicts": Thing(
            [traffic.arp(1), traffic.arp(2, ANN, EVE_MAC), traffic.arp(3)],
            [row(MINUTE, ANN, 2, "02:00:00:00:00:01", "02:00:00:00:00:03")],
        ),
        "beacons": Thing(home_calls(12), [row(HOUR, BOB, WEB, 8443, 12, 12)], home_calls(9)),
        "broadcasts": Thing(
            [traffic.arp(1), (2, UDP_28.copy()), (3, to_group()), (4, UDP_28.copy())],
            [row(MINUTE, "trace", 4, 1, 1, 50.0)],
            EMPTY,
        ),
        "congestion_marks": Thing(
            [(1, frame(IP(src=ANN, dst=BOB, tos=3) / UDP())), (2, frame(IP(tos=1) / UDP()))],
            [row(MINUTE, ANN, BOB, 1)],
        ),
        "connections": Thing(
            connection(),
            [
                row(start(60, 1), WEB, 443, ANN, 40000, 1, 54, 0, "false", "false"),
                row(start(60, 2), ANN, 40000, WEB, 443, 3, 162, 65, "false", "true"),
            ],
            NO_IP,
        ),
        "conversations": Thing(
            [(1, UDP_28.copy()), (2, tcp(BOB, 2, ANN, 1, "A")), (3, UDP_28.copy())],
            [row(MINUTE, ANN, BOB, 138, 2, 84, 1, 54)],
            NO_IP,
        ),
        "dhcp_servers": Thing(
            [(1, traffic.offer()), (2, traffic.offer())], [row(MINUTE, EVE_MAC, BOB, 2, 1)]
        ),
        "dns_failures": Thing(
            [*traffic.lookup(1, "nowhere.example", rcode=3), *traffic.lookup(2)],
            [row(MINUTE, NAMES, "nowhere.example", 3, 1, 1)],
        ),
        "dns_names": Thing(
            [*traffic.lookup(1), *traffic.lookup(2), *traffic.lookup(3, "other.example", rcode=3)],
            [row(MINUTE, "www.example.org", 1, 2, 1), row(MINUTE, "other.example", 1, 1, 1)],
            resent(),
        ),
        "failed_handshakes": Thing(
            [
                *traffic.session(1, port=81),
                (2, tcp(ANN, 40001, WEB, 81, "S", seq=5)),
                (2.1, tcp(WEB, 81, ANN, 40001, "RA", ack=6)),
                (3, tcp(ANN, 40002, WEB, 82, "S", seq=5)),
                (4, tcp(ANN, 40002, WEB, 82, "S", seq=5)),
                (130, frame(IP(src=BOB, dst=ANN) / UDP(sport=9, dport=9) / b"later")),
            ],
            [row(start(60, 1), WEB, 81, 2, 1, 0), row(start(60, 1), WEB, 82, 1, 0, 1)],
        ),
        "flow": Thing([(1, UDP_28.copy())], [row(TEN, 17, ANN, 1, BOB, 2, 1, 42)], NO_IP),
        "fragments": Thing(fragments(), [row(MINUTE, ANN, BOB, 17, 2, 92)]),
        "handshake_delay": Thing(
            [*traffic.session(1, delay=0.02), *traffic.session(5, 40001, delay=0.04)],
            [row(MINUTE, WEB, 80, 2, 20.0, 30.0, 40.0)],
            [(1, tcp(ANN, 40000, WEB, 80, "S")), (2, tcp(WEB, 80, ANN, 40000, "SA", ack=77))],
        ),
        "frequent_flows": Thing(
            busy_flow_among(1200),
            [row(MINUTE, 17, ANN, 7, BOB, 7, 30, 1, 2.5203252032520327)],
            busy_flow_among(1200, packets=5),
        ),
        "heavy_hitters": Thing(
            [
                (1, frame(IP(src=ANN, dst=WEB) / UDP() / bytes(938))),
                *(
                    (2 + n, frame(IP(src=BOB, dst=f"10.0.1.{n}") / UDP() / bytes(8)))
                    for n in range(20)
                ),
            ],
            [row(MINUTE, ANN, WEB, 980, 49.494949494949495)],
            [(2 + n, frame(IP(src=BOB, dst=f"10.0.1.{n}") / UDP())) for n in range(20)],
        ),
        "host_scan": Thing(
            traffic.scan([445], [f"10.0.3.{n}" for n in range(25)]),
            [row(MINUTE, BOB, 445, 25, 25)],
            traffic.scan([445], [f"10.0.3.{n}" for n in range(19)]),
        ),
        "http_hosts": Thing(
            list(traffic.session(1)), [row(MINUTE, "www.example.org", "GET", 1, 1)], resent()
        ),
        "icmp_unreachable": Thing(
            traffic.unreachable(12), [row(TEN, "10.9.9.9", ANN, 4, 12)], traffic.unreachable(9)
        ),
        "link_load": Thing([(1, UDP_28.copy())], [row(start(1, 1), "trace", 1, 336, 42.0)], EMPTY),
        "load_last_minute": Thing(
            [(1, UDP_28.copy())],
            [row(start(1, n), "trace", 1, 5.6, 42.0) for n in range(2, 62)],
            EMPTY,
        ),
        "load_percentiles": Thing(
            [(n, UDP_28.copy()) for n in (1, 2, 3, 4, 4.5)],
            [row(HOUR, "trace", 4, 336.0, 621.5999999999999, 672)],
            EMPTY,
        ),
        "many_sources": Thing(flood(60), [row(MINUTE, WEB, 61.0, 0.0)], flood(45)),
        "new_hosts": Thing(
            hosts([[ANN, BOB], [BOB, WEB], [BOB], [WEB]]),
            [
                row(HOUR, ANN, 1, start(1)),
                row(HOUR, BOB, 1, start(1, 60)),
                row(start(3600, 1), WEB, 1, start(1, 3660)),
                row(start(3600, 3), WEB, 1, start(1, 10800)),
            ],
            NO_IP,
        ),
        "new_tls_names": Thing(
            [
                (at, tcp(ANN, 40000, WEB, 443, "PA", traffic.tls_hello(name)))
                for at, name in (
                    (1, b"old.example"),
                    (3601, b"old.example"),
                    (3602, b"new.example"),
                )
            ],
            [row(HOUR, "old.example", 1, 1), row(start(3600, 1), "new.example", 1, 1)],
        ),
        "odd_flags": Thing(
            strange(),
            [
                row(MINUTE, BOB, WEB, 0, 1, 1),
                row(MINUTE, BOB, WEB, 3, 1, 1),
                row(MINUTE, BOB, WEB, 6, 1, 1),
                row(MINUTE, BOB, WEB, 41, 2, 2),
            ],
        ),
        "packet_sizes": Thing(
            [(1, UDP_28.copy()), (2, frame(IP() / UDP() / bytes(300)))],
            [row(MINUTE, 0, 1, 42), row(MINUTE, 256, 1, 342)],
            EMPTY,
        ),
        "port_scan": Thing(
            traffic.scan(range(1, 31)), [row(MINUTE, BOB, WEB, 30, 30)], traffic.scan(range(1, 20))
        ),
        "protocol_mix": Thing(
            [(1, UDP_28.copy()), (2, frame(IP() / ICMP()))],
            [row(MINUTE, 4, 1, 1, 42), row(MINUTE, 4, 17, 1, 42)],
            NO_IP,
        ),
        "random_flows": Thing(
            [(1, UDP_28.copy()), (2, UDP_28.copy()), (61, UDP_28.copy())],
            [
                row(MINUTE, 17, ANN, 1, BOB, 2, 2, 84, 1),
                row(start(60, 1), 17, ANN, 1, BOB, 2, 1, 42, 1),
            ],
            NO_IP,
        ),
        "recent_host_scan": Thing(
            slow_scan(25),
            [
                row(start(30, end), BOB, 445, hosts, hosts)
                for end, hosts in ((7, 21), (8, 24), (9, 25), (10, 25), (11, 22))
            ],
            slow_scan(19),
        ),
        "resets": Thing([(1, tcp(WEB, 80, ANN, 40000, "RA"))], [row(MINUTE, WEB, 80, ANN, 1)]),
        "retransmissions": Thing(resent(), [row(MINUTE, ANN, 40000, WEB, 80, 3, 1)]),
        "routing_loops": Thing(
            traffic.exceeded(),
            [
                row(MINUTE, "10.9.9.9", ANN, 4, 1),
                row(MINUTE, "2001:db8::9", "2001:db8::1", 6, 1),
            ],
        ),
        "sampled_flows": Thing(
            flows_of_two_minutes(),
            [
                # the first minute begins at 200 bytes, the second one at 200 * 2 / 100
                row(MINUTE, 17, ANN, 1, WEB, 2, 1, 1042, 1042.0, 200.0),
                row(MINUTE, 17, ANN, 3, WEB, 2, 1, 142, 200.0, 200.0),
                *(row(start(60, 1), 17, ANN, n, WEB, 2, 1, 142, 142.0, 4.0) for n in (2, 3)),
            ],
            NO_IP,
        ),
        "slow_dns": Thing(
            [*traffic.lookup(1, "slow.example", delay=0.25), *traffic.lookup(5)],
            [row(MINUTE, NAMES, ANN, "slow.example", 1, 250.0)],
        ),
        "syn_flood": Thing(
            flood(150, going_on=3),
            [row(TEN, WEB, 80, 150, 3, 150)],
            flood(150, going_on=15),
        ),
        "tls_names": Thing(
            [(1, tcp(ANN, 40000, WEB, 443, "PA", traffic.tls_hello(b"shop.example")))],
            [row(MINUTE, "shop.example", ANN, WEB, 1)],
        ),
        "top_ports": Thing([(1, UDP_28.copy())], [row(MINUTE, 17, 2, 1, 42, 1)], NO_IP),
        "top_receivers": Thing(
            [(1, frame(IP(src=ANN, dst=WEB) / UDP() / bytes(958))), (2, UDP_28.copy())],
            [row(MINUTE, WEB, 1, 1000), row(MINUTE, BOB, 1, 42)],
            NO_IP,
        ),
        "top_talkers": Thing(
            [(1, frame(IP(src=ANN, dst=WEB) / UDP() / bytes(958))), (2, UDP_28.copy())],
            [row(MINUTE, ANN, 2, 1042)],
            NO_IP,
        ),
        "talkers_last_hour": Thing(
            [(1, frame(IP(src=ANN, dst=WEB) / UDP() / bytes(958))), (2, UDP_28.copy())],
            [row(start(60, n), ANN, 2, 1042) for n in range(1, 61)],
            NO_IP,
        ),
        "traffic_matrix": Thing(
            [(1, UDP_28.copy()), (2, tcp(ANN, 1, WEB, 80, "S"))],
            [
                row(MINUTE, "10.0.0.0", "10.0.0.0", 1, 42),
                row(MINUTE, "10.0.0.0", "192.0.0.0", 1, 54),
            ],
            NO_IP,
        ),
        "ttl_changes": Thing(
            [(n, frame(IP(src=ANN, dst=BOB, ttl=64 - n // 2) / UDP())) for n in range(4)],
            [row(MINUTE, ANN, BOB, 17, 4, 2, 63, 64)],
        ),
        "tunnels": Thing(
            [(1, traffic.tunnelled())],
            [row(MINUTE, ANN, WEB, "172.16.0.1", "172.16.0.2", 1, 72)],
        ),
        "udp_jitter": Thing(
            traffic.voice([0.02] * 6 + [0.04] * 4),
            [row(TEN, ANN, 7078, BOB, 7080, 10, 28.0, 10.327955589886445, 40.0)],
            traffic.voice([0.02] * 5),
        ),
        "vlans": Thing([(1, traffic.tagged())], [row(MINUTE, 7, 1, 49, 1)]),
        "zero_windows": Thing(
            [(1, tcp(ANN, 40000, WEB, 80, "A", window=0))], [row(MINUTE, ANN, WEB, 80, 1)]
        ),
    }
