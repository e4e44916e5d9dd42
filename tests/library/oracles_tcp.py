"""Plain loops over what tshark shows: queries about TCP."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING

from tests.library.oracles_ip import Values, grouped, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.library.tshark import Packet


def tcp(packets: Sequence[Packet]) -> list[Packet]:
    """Return the TCP packets."""
    return [packet for packet in packets if packet.is_tcp]


def attempts(packets: Sequence[Packet]) -> list[Packet]:
    """Return the packets with SYN and without ACK."""
    return [p for p in tcp(packets) if p.flag("S") and not p.flag("A")]


def beacons(packets: Sequence[Packet]) -> Iterator[Values]:
    for key, group in grouped(
        attempts(packets), lambda p: (p.time // 3600, p.source, p.target, p.ports[1])
    ):
        minutes = len({p.minute for p in group})
        if minutes >= 10 and len(group) <= 2 * minutes:
            yield *key, minutes, len(group)


def lives(packets: Sequence[Packet], key: Callable[[Packet], Values]) -> Iterator[list[Packet]]:
    """Yield the packets of each key, cut where there is none for a whole minute of the clock."""
    for _, group in grouped(packets, key):
        life: list[Packet] = []
        for packet in sorted(group, key=lambda p: p.time_ns):
            if life and packet.minute > life[-1].minute + 1:
                yield life
                life = []
            life.append(packet)
        yield life


def handshakes(packets: Sequence[Packet]) -> Iterator[tuple[Packet, Packet]]:
    """Yield the first SYN and the first SYN-ACK of each connection."""

    def connection(p: Packet) -> Values:
        if p.flag("A"):
            return *p.way_back, (p.number_of("tcp.ack_raw") - 1) % 2**32
        return *p.flow, p.number_of("tcp.seq_raw")

    for life in lives([p for p in tcp(packets) if p.flag("S")], connection):
        attempt = next((p for p in life if not p.flag("A")), None)
        answer = next((p for p in life if p.flag("A")), None)
        if attempt and answer and attempt.time_ns <= answer.time_ns:
            yield attempt, answer


def handshake_delay(packets: Sequence[Packet]) -> Iterator[Values]:
    servers: dict[Values, list[float]] = defaultdict(list)
    for attempt, answer in handshakes(packets):
        delay = (answer.time_ns - attempt.time_ns) / 1e6
        servers[answer.minute, attempt.target, attempt.ports[1]].append(delay)
    for key, delays in servers.items():
        yield *key, len(delays), min(delays), fmean(delays), max(delays)


def failed_handshakes(packets: Sequence[Packet]) -> Iterator[Values]:
    def connection(p: Packet) -> Values:
        if p.flag("A"):
            return *p.way_back, (p.number_of("tcp.ack_raw") - 1) % 2**32
        return *p.flow, p.number_of("tcp.seq_raw")

    def is_of_interest(p: Packet) -> bool:
        return p.flag("S") or (p.flag("R") and p.flag("A"))

    end = max(p.minute for p in packets)
    servers: dict[Values, list[str]] = defaultdict(list)
    for life in lives([p for p in tcp(packets) if is_of_interest(p)], connection):
        attempt = next((p for p in life if p.flag("S") and not p.flag("A")), None)
        if attempt is not None:
            is_answered = any(p.flag("S") and p.flag("A") for p in life)
            is_reset = any(p.flag("R") for p in life)
            outcome = "answered" if is_answered else "refused" if is_reset else "unanswered"
            minute = min(life[-1].minute + 1, end)
            servers[minute, attempt.target, attempt.ports[1]].append(outcome)
    for key, outcomes in servers.items():
        if set(outcomes) != {"answered"}:
            yield *key, len(outcomes), outcomes.count("refused"), outcomes.count("unanswered")


def host_scan(packets: Sequence[Packet]) -> Iterator[Values]:
    for key, group in grouped(attempts(packets), lambda p: (p.minute, p.source, p.ports[1])):
        hosts = {p.target for p in group}
        if len(hosts) >= 20:
            yield *key, len(hosts), len(group)


def odd_flags(packets: Sequence[Packet]) -> Iterator[Values]:
    def is_odd(p: Packet) -> bool:
        seen = {letter for letter in "FSRPAU" if p.flag(letter)}
        return not seen or {"S", "F"} <= seen or {"S", "R"} <= seen or seen == set("FPU")

    strange = [p for p in tcp(packets) if is_odd(p)]
    for key, group in grouped(strange, lambda p: (p.minute, p.source, p.target, p.flags)):
        yield *key, len(group), len({p.ports[1] for p in group})


def port_scan(packets: Sequence[Packet]) -> Iterator[Values]:
    for key, group in grouped(attempts(packets), lambda p: (p.minute, p.source, p.target)):
        ports = {p.ports[1] for p in group}
        if len(ports) >= 20:
            yield *key, len(ports), len(group)


def resets(packets: Sequence[Packet]) -> Iterator[Values]:
    broken = [p for p in tcp(packets) if p.flag("R")]
    for key, group in grouped(broken, lambda p: (p.minute, p.source, p.ports[0], p.target)):
        yield *key, len(group)


def zero_windows(packets: Sequence[Packet]) -> Iterator[Values]:
    full = [
        p
        for p in tcp(packets)
        if p.number_of("tcp.window_size_value") == 0 and not any(map(p.flag, "SRF"))
    ]
    for key, group in grouped(full, lambda p: (p.minute, p.source, p.target, p.ports[1])):
        yield *key, len(group)


def syn_flood(packets: Sequence[Packet]) -> Iterator[Values]:
    towards = [p for p in tcp(packets) if not (p.flag("S") and p.flag("A"))]
    for key, group in grouped(towards, lambda p: (p.time // 10, p.target, p.ports[1])):
        clients = {(p.source, p.ports[0]) for p in group if _goes_on(p)}
        syns = [p for p in group if p.flag("S")]
        continued = sum((p.source, p.ports[0]) in clients for p in syns)
        if len(syns) >= 100 and continued * 10 < len(syns):
            yield *key, len(syns), continued, len({p.source for p in syns})


def _goes_on(packet: Packet) -> bool:
    return packet.flag("A") and not packet.flag("R")


def connections(packets: Sequence[Packet]) -> Iterator[Values]:
    end = max(p.minute for p in packets)
    for life in lives(tcp(packets), lambda p: p.flow):
        reported = min(life[-1].minute + 1, end)
        seconds = life[-1].time - life[0].time
        flags = [str(any(p.flag(letter) for p in life)).lower() for letter in "FR"]
        yield reported, *life[0].flow, len(life), size(life), seconds, *flags


def retransmissions(packets: Sequence[Packet]) -> Iterator[Values]:
    minutes: dict[Values, list[bool]] = defaultdict(list)
    sent = [p for p in tcp(packets) if p.number_of("tcp.len") > 1 or p.flag("S") or p.flag("F")]
    latest: dict[Values, int] = {}
    for packet in sorted(sent, key=lambda p: p.time_ns):
        segment = (packet.flow, packet.number_of("tcp.seq_raw"))
        is_again = segment in latest and packet.minute <= latest[segment] + 1
        latest[segment] = packet.minute
        minutes[packet.minute, *packet.flow].append(is_again)
    for key, repeats in minutes.items():
        if any(repeats):
            yield *key, len(repeats), sum(repeats)
