"""The answers of the cookbook by plain loops over what tshark shows of its capture.

The recipes that only name library queries are compared with the oracles of ``tests/library``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from ipaddress import ip_address, ip_network
from math import sqrt
from statistics import fmean, median, quantiles
from typing import TYPE_CHECKING, Any

from tests.docs.office import ANN, CALLED, STRANGER
from tests.library import oracles_ip, oracles_samples, oracles_tcp
from tests.library.oracles_ip import Values, grouped, size, with_ip
from tests.library.traffic import BASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tests.library.tshark import Packet

    Oracle = Callable[[Sequence[Packet]], Iterable[Values]]


def moment(nanoseconds: int) -> str:
    """A TIMESTAMP as CSV writes it."""
    second = datetime.fromtimestamp(nanoseconds // 10**9, tz=UTC)
    return f"{second:%Y-%m-%d %H:%M:%S}.{nanoseconds % 10**9:09d}Z"


def began(seconds: int, length: int = 1) -> str:
    """The beginning of the span of ``length`` seconds that holds a second."""
    return moment(seconds // length * length * 10**9)


def number_of(address: str) -> tuple[int, bytes]:
    """What addresses are sorted by."""
    return ip_address(address).version, ip_address(address).packed


def largest(rows: Iterable[Values], place: int, count: int | None = None) -> list[Values]:
    """The rows with the greatest values at ``place``; equal ones in the order of their columns."""

    def key(row: Values) -> list[Any]:
        return [_rank(v) if isinstance(v, str) else v for v in row]

    def value(row: Values) -> Any:
        return row[place]

    return sorted(sorted(rows, key=key), key=value, reverse=True)[:count]


def _rank(value: Any) -> Any:
    try:
        return number_of(value)
    except ValueError:
        return value


def conversations(packets: Sequence[Packet]) -> list[Values]:
    rows: list[Values] = []
    for (a, b), group in grouped(
        with_ip(packets), lambda p: tuple(sorted((p.source, p.target), key=number_of))
    ):
        there, back = (size(p for p in group if p.source == end) for end in (a, b))
        rows.append((a, b, size(group), there or None, back or None))
    return largest(rows, 2, 5)


def by(
    packets: Iterable[Packet], key: Callable[[Packet], Values], *, of: str = "packets bytes"
) -> Iterator[Values]:
    """The packets and bytes, or one of them, of each key."""
    for values, group in grouped(packets, key):
        counts = {"packets": len(group), "bytes": size(group)}
        yield *values, *(counts[name] for name in of.split())


def questions(packets: Sequence[Packet]) -> list[Packet]:
    """The packets that ask DNS."""
    return [p for p in packets if p.is_udp and p.ports[1] == 53]


def answers(packets: Sequence[Packet]) -> list[Packet]:
    """The packets in which DNS answers."""
    return [p for p in packets if p.is_udp and p.ports[0] == 53]


def name_of(packet: Packet) -> str:
    """The name that a packet asks for."""
    return (packet.text("dns.qry.name") or "").lower()


def top_names(packets: Sequence[Packet]) -> list[Values]:
    rows = by(questions(packets), lambda p: (name_of(p),), of="packets")
    return largest(rows, 1, 5)


def load_of_minutes(packets: Sequence[Packet]) -> Iterator[Values]:
    for (minute,), group in grouped(packets, lambda p: (p.minute,)):
        yield began(int(str(minute)) * 60), len(group), size(group) * 8 // 60


def top_of_tens(packets: Sequence[Packet]) -> Iterator[Values]:
    early = [p for p in with_ip(packets) if p.time < BASE + 120]
    tens = sorted({p.time // 10 for p in early})
    for ten in tens:
        sources = by((p for p in early if p.time // 10 == ten), lambda p: (p.source,), of="bytes")
        for source, sent in largest(sources, 1, 3):
            yield began(ten * 10), source, sent


def busiest_seconds(packets: Sequence[Packet]) -> list[Values]:
    seconds = [
        (began(int(str(s))), 8 * size(g)) for (s,), g in grouped(packets, lambda p: (p.time,))
    ]
    return largest(seconds, 1, 3)


def peaks(packets: Sequence[Packet]) -> Iterator[Values]:
    for (minute,), group in grouped(packets, lambda p: (p.minute,)):
        pieces = by(group, lambda p: (p.time_ns // 10**7,), of="bytes")
        yield began(int(str(minute)) * 60), max(int(str(sent)) for _, sent in pieces) * 800


def one_host(packets: Sequence[Packet]) -> Iterator[Values]:
    own = [p for p in with_ip(packets) if ANN in (p.source, p.target)]
    for (minute,), group in grouped(own, lambda p: (began(p.time, 60),)):
        sent = [p for p in group if p.source == ANN]
        received = [p for p in group if p.target == ANN]
        yield minute, size(sent) if sent else None, size(received) if received else None


def directions(packets: Sequence[Packet]) -> list[Values]:
    def direction(p: Packet) -> Values:
        here = (p.source.startswith("10.0."), p.target.startswith("10.0."))
        names = {(True, True): "inside", (True, False): "out", (False, True): "in"}
        return (names.get(here, "transit"),)

    return largest(by((p for p in packets if p.version == 4), direction), 2)


def networks(packets: Sequence[Packet]) -> list[Values]:
    def network(address: str) -> str:
        bits = 24 if ip_address(address).version == 4 else 48
        return str(ip_network(f"{address}/{bits}", strict=False).network_address)

    pairs = by(with_ip(packets), lambda p: (network(p.source), network(p.target)), of="bytes")
    return largest(pairs, 2, 5)


def largest_flows(packets: Sequence[Packet]) -> list[Values]:
    return largest(by(with_ip(packets), lambda p: (*p.flow, p.protocol)), 6, 3)


def silent_minutes(packets: Sequence[Packet]) -> Iterator[Values]:
    heard = {p.time for p in packets}
    silent = [s for s in range(min(heard), max(heard)) if s not in heard]
    for minute in range(min(heard) // 60, max(heard) // 60 + 1):
        count = sum(second // 60 == minute for second in silent)
        if count >= 55:
            yield began(minute * 60), "office", count


def lookups_of_ann(packets: Sequence[Packet]) -> Iterator[Values]:
    for p in questions(packets):
        if p.source == ANN:
            yield began(p.time), name_of(p), p.number_of("dns.qry.type")


def askers(packets: Sequence[Packet]) -> Iterator[Values]:
    of_domain = [p for p in questions(packets) if name_of(p).endswith(".example.net")]
    for (client,), group in grouped(of_domain, lambda p: (p.source,)):
        yield client, len(group), len({name_of(p) for p in group})


def addresses(packets: Sequence[Packet]) -> set[Values]:
    return {
        (name_of(p), p.text("dns.a") or p.text("dns.aaaa"))
        for p in answers(packets)
        if p.number_of("dns.count.answers") and not name_of(p).endswith(".t.example.net")
    }


def long_names(packets: Sequence[Packet]) -> Iterator[Values]:
    for (client,), group in grouped(questions(packets), lambda p: (p.source,)):
        names = [name_of(p) for p in group]
        mean = fmean(map(len, names))
        if mean > 40:
            yield client, len(set(names)), mean, max(names)


def resolvers(packets: Sequence[Packet]) -> Iterator[Values]:
    for (server,), group in grouped(answers(packets), lambda p: (p.source,)):
        yield server, len(group), len({p.target for p in group})


def dns_delays(packets: Sequence[Packet]) -> Iterator[Values]:
    delays = [float(p.text("dns.time") or 0) * 1000 for p in answers(packets)]
    p95 = quantiles(delays, n=20, method="inclusive")[-1]
    yield len(delays), median(delays), float(round(p95)), max(delays)


def failing_servers(packets: Sequence[Packet]) -> list[Values]:
    servers: dict[object, list[int]] = {}
    for _, server, _, *counts in oracles_tcp.failed_handshakes(packets):
        sums = servers.setdefault(server, [0, 0, 0])
        for place, count in enumerate(counts):
            sums[place] += int(str(count))
    return largest(((server, *sums) for server, sums in servers.items()), 1, 3)


def resent_shares(packets: Sequence[Packet]) -> Iterator[Values]:
    sent: dict[object, list[int]] = {}
    for _, source, _, _, _, segments, repeated in oracles_tcp.retransmissions(packets):
        counts = sent.setdefault(source, [0, 0])
        counts[0] += int(str(segments))
        counts[1] += int(str(repeated))
    for source, (segments, repeated) in sent.items():
        yield source, segments, repeated, repeated * 100 / segments


def heavy(oracle: Oracle, packets: Sequence[Packet]) -> Iterator[Values]:
    for minute, host, sent, bytes_ in oracle(packets):
        if int(str(bytes_)) > 10000:
            yield began(int(str(minute)) * 60), host, sent, bytes_


def resetters(packets: Sequence[Packet]) -> list[Values]:
    resets = [p for p in oracles_tcp.tcp(packets) if p.flag("R")]
    return largest(by(resets, lambda p: (p.source,), of="packets"), 1)


def longest_connections(packets: Sequence[Packet]) -> list[Values]:
    rows = oracles_tcp.connections(packets)
    return largest(((*ends, seconds, bytes_) for _, *ends, _, bytes_, seconds, _, _ in rows), 4, 3)


def web_answers(packets: Sequence[Packet]) -> Iterator[Values]:
    for p in oracles_tcp.tcp(packets):
        if p.text("http.request.method") == "GET":
            back = [
                r.time_ns
                for r in oracles_tcp.tcp(packets)
                if r.flow == p.way_back and r.number_of("tcp.len") and r.time_ns >= p.time_ns
            ]
            yield moment(p.time_ns), p.text("http.host"), (min(back) - p.time_ns) / 1e6


def changed_cards(packets: Sequence[Packet]) -> Iterator[Values]:
    own = [p for p in packets if p.version == 4 and p.source.startswith("10.0.0.")]
    for (hour, source), group in grouped(own, lambda p: (began(p.time, 3600), p.source)):
        cards = [p.text("eth.src") for p in sorted(group, key=lambda p: p.time_ns)]
        if len(set(cards)) > 1:
            yield hour, source, len(set(cards)), cards[0], cards[-1]


def logins(packets: Sequence[Packet]) -> Iterator[Values]:
    attempts = [p for p in oracles_tcp.attempts(packets) if p.ports[1] in (22, 23, 3389)]
    outside = [p for p in attempts if not p.source.startswith(("10.", "192.168."))]
    return by(outside, lambda p: (p.source, p.target, p.ports[1]), of="packets")


def clear_text(packets: Sequence[Packet]) -> Iterator[Values]:
    talks = [
        p
        for p in oracles_tcp.tcp(packets)
        if p.ports[1] in (21, 23, 110, 143) and p.number_of("tcp.len")
    ]
    return by(talks, lambda p: (p.source, p.target, p.ports[1]), of="packets")


def listed(packets: Sequence[Packet]) -> Iterator[Values]:
    why = {CALLED: "botnet", STRANGER: "password guessing"}
    met = [p for p in with_ip(packets) if p.target in why and p.time < BASE + 180]
    return by(met, lambda p: (began(p.time, 60), p.source, p.target, why[p.target]), of="packets")


def priorities(packets: Sequence[Packet]) -> Iterator[Values]:
    def dscp(p: Packet) -> Values:
        return (p.number_of("ip.dsfield.dscp" if p.version == 4 else "ipv6.tclass.dscp"),)

    return by(with_ip(packets), dscp)


def senders_of_sampled_flows(packets: Sequence[Packet]) -> list[Values]:
    senders: dict[Any, list[Any]] = {}
    for row in oracles_samples.sampled_flows(packets):
        senders.setdefault(row[2], []).append(row)
    rows: list[Values] = []
    for source, own in senders.items():
        off = [row[9] ** 2 for row in own if row[7] <= row[9]]
        rows.append((source, sum(row[8] for row in own), sqrt(sum(off))))
    return largest(rows, 1, 3)


def most_frequent_flows(packets: Sequence[Packet]) -> Iterator[Values]:
    for row in oracles_samples.frequent_flows(packets):
        minute, _, source, _, target, port, count, missed, percent = row
        if int(str(count)) > 50:
            yield began(int(str(minute)) * 60), source, target, port, count, missed, percent


BY_NUMBER: dict[int, Oracle] = {
    1: lambda packets: largest(by(with_ip(packets), lambda p: (p.source,), of="bytes"), 1, 3),
    2: lambda packets: heavy(oracles_ip.top_talkers, packets),
    3: conversations,
    5: lambda packets: by(with_ip(packets), lambda p: (p.version,)),
    6: lambda packets: heavy(oracles_ip.top_receivers, packets),
    7: top_names,
    9: load_of_minutes,
    11: top_of_tens,
    13: busiest_seconds,
    14: peaks,
    15: one_host,
    16: directions,
    17: networks,
    18: largest_flows,
    19: silent_minutes,
    20: lambda packets: by(packets, lambda p: (p.len // 256 * 256,)),
    22: lookups_of_ann,
    24: askers,
    25: addresses,
    26: long_names,
    27: resolvers,
    31: dns_delays,
    32: failing_servers,
    34: resent_shares,
    35: resetters,
    37: longest_connections,
    38: web_answers,
    44: changed_cards,
    46: logins,
    47: clear_text,
    48: listed,
    54: priorities,
    55: senders_of_sampled_flows,
    56: most_frequent_flows,
}
"""By the number of the question."""
