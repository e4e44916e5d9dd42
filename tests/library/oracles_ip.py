"""Plain loops over what tshark shows: queries about frames, IP, UDP, ICMP and ARP."""

from __future__ import annotations

import statistics
from collections import defaultdict
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any

from tests.reference.reference import when

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tests.library.tshark import Packet

Values = tuple[object, ...]
Group = tuple[Values, list["Packet"]]

QUOTES = {"icmp", "icmpv6"}
OTHER_TUNNELS = {"ayiya", "wlan"}
"""Between two IP headers: no tunnel, and tunnels that ``inner.`` does not read."""


def grouped(packets: Iterable[Packet], key: Callable[[Packet], Values]) -> Iterator[Group]:
    """Yield each value of ``key`` and its packets."""
    groups: dict[Values, list[Packet]] = defaultdict(list)
    for packet in packets:
        groups[key(packet)].append(packet)
    yield from groups.items()


def size(packets: Iterable[Packet]) -> int:
    """Return the bytes of all packets."""
    return sum(packet.len for packet in packets)


def with_ip(packets: Sequence[Packet]) -> list[Packet]:
    """Return the packets with an IP header."""
    return [packet for packet in packets if packet.version]


def arp_conflicts(packets: Sequence[Packet]) -> Iterator[Values]:
    claims = [p for p in packets if p.text("arp.src.proto_ipv4") not in (None, "0.0.0.0")]
    for (minute, address), group in grouped(
        claims, lambda p: (p.minute, p.text("arp.src.proto_ipv4"))
    ):
        stations = {_station(p) for p in group}
        if len(stations) > 1:
            yield minute, address, len(stations), min(stations), max(stations)


def _station(packet: Packet) -> str:
    """Return the sender's hardware address.

    tshark names it otherwise where it is not Ethernet's.
    """
    other = bytes.fromhex(packet.text("arp.src.hw") or "")
    return packet.text("arp.src.hw_mac") or other.hex(":")


def broadcasts(packets: Sequence[Packet]) -> Iterator[Values]:
    for (minute,), group in grouped(packets, lambda p: (p.minute,)):
        targets = [p.text("eth.dst") or p.text("wlan.da") or "" for p in group]
        broadcast = targets.count("ff:ff:ff:ff:ff:ff")
        multicast = sum(target.startswith(("01:", "33:33:")) for target in targets)
        percent = (broadcast + multicast) * 100 / len(group)
        yield minute, "trace", len(group), broadcast, multicast, percent


def congestion_marks(packets: Sequence[Packet]) -> Iterator[Values]:
    marked = [
        p
        for p in with_ip(packets)
        if p.number_of("ip.dsfield.ecn" if p.version == 4 else "ipv6.tclass.ecn") == 3
    ]
    for key, group in grouped(marked, lambda p: (p.minute, p.source, p.target)):
        yield *key, len(group)


def dhcp_servers(packets: Sequence[Packet]) -> Iterator[Values]:
    answers = [
        p for p in packets if p.is_udp and p.ports == (67, 68) and p.number_of("dhcp.type") == 2
    ]
    for key, group in grouped(answers, lambda p: (p.minute, p.text("eth.src"), p.source)):
        yield *key, len(group), len({p.text("dhcp.hw.mac_addr") for p in group})


def flow(packets: Sequence[Packet]) -> Iterator[Values]:
    for key, group in grouped(with_ip(packets), lambda p: (p.time // 10, p.protocol, *p.flow)):
        yield *key, len(group), size(group)


def conversations(packets: Sequence[Packet]) -> Iterator[Values]:
    def ends(p: Packet) -> Values:
        return tuple(sorted((p.source, p.target), key=lambda a: ip_address(a).packed))

    for (minute, a, b), group in grouped(with_ip(packets), lambda p: (p.minute, *ends(p))):
        there = [p for p in group if p.source == a]
        back = [p for p in group if p.source != a]
        yield minute, a, b, size(group), len(there), size(there), len(back), size(back)


def fragments(packets: Sequence[Packet]) -> Iterator[Values]:
    def is_fragment(p: Packet) -> bool:
        more = "ip.flags.mf" if p.version == 4 else "ipv6.fraghdr.more"
        return p.number_of(more) == 1 or p.is_later_fragment

    parts = [p for p in with_ip(packets) if is_fragment(p)]
    for key, group in grouped(parts, lambda p: (p.minute, p.source, p.target, p.protocol)):
        yield *key, len(group), size(group)


def heavy_hitters(packets: Sequence[Packet]) -> Iterator[Values]:
    for (minute,), everything in grouped(with_ip(packets), lambda p: (p.minute,)):
        whole = size(everything)
        for key, group in grouped(everything, lambda p: (p.source, p.target)):
            if size(group) * 10 >= whole:
                yield minute, *key, size(group), size(group) * 100 / whole


def load_percentiles(packets: Sequence[Packet]) -> Iterator[Values]:
    hours: dict[int, list[int]] = defaultdict(list)
    for (second,), group in grouped(packets, lambda p: (p.time,)):
        assert isinstance(second, int)
        hours[second // 3600].append(8 * size(group))
    for hour, loads in hours.items():
        median = float(statistics.median(loads))
        # what statistics calls inclusive is percentile_cont of SQL
        cuts = statistics.quantiles([*loads, *loads[: len(loads) == 1]], n=20, method="inclusive")
        yield hour, "trace", len(loads), median, float(cuts[-1]), max(loads)


def _messages(packets: Sequence[Packet], kind4: int, kind6: int) -> list[Packet]:
    return [
        p
        for p in packets
        if (p.has("icmp", 1) and p.text("icmp.type") == str(kind4))
        or (p.has("icmpv6", 58) and p.text("icmpv6.type") == str(kind6))
    ]


def icmp_unreachable(packets: Sequence[Packet]) -> Iterator[Values]:
    reports = _messages(packets, 3, 1)
    for key, group in grouped(reports, lambda p: (p.time // 10, p.source, p.target, p.version)):
        if len(group) >= 10:
            yield *key, len(group)


def link_load(packets: Sequence[Packet]) -> Iterator[Values]:
    for (second,), group in grouped(packets, lambda p: (p.time,)):
        yield second, "trace", len(group), 8 * size(group), size(group) / len(group)


def new_hosts(packets: Sequence[Packet]) -> Iterator[Values]:
    hours: dict[str, set[int]] = defaultdict(set)
    groups = dict(grouped(with_ip(packets), lambda p: (p.time // 3600, p.source)))
    for hour, host in groups:
        assert isinstance(hour, int)
        hours[str(host)].add(hour)
    for (hour, host), group in groups.items():
        assert isinstance(hour, int)
        if hour - 1 not in hours[str(host)]:
            yield hour, host, len(group), when(min(p.time_ns for p in group))


def packet_sizes(packets: Sequence[Packet]) -> Iterator[Values]:
    for key, group in grouped(packets, lambda p: (p.minute, p.len // 256 * 256)):
        yield *key, len(group), size(group)


def protocol_mix(packets: Sequence[Packet]) -> Iterator[Values]:
    for key, group in grouped(with_ip(packets), lambda p: (p.minute, p.version, p.protocol)):
        yield *key, len(group), size(group)


def routing_loops(packets: Sequence[Packet]) -> Iterator[Values]:
    reports = _messages(packets, 11, 3)
    for key, group in grouped(reports, lambda p: (p.minute, p.source, p.target, p.version)):
        yield *key, len(group)


def top_ports(packets: Sequence[Packet]) -> Iterator[Values]:
    known = [p for p in with_ip(packets) if 0 < p.ports[1] < 1024]
    rows = [
        (*key, len(group), size(group), len({p.source for p in group}))
        for key, group in grouped(known, lambda p: (p.minute, p.protocol, p.ports[1]))
    ]
    yield from _greatest(rows, lambda row: (-row[4], row[1], row[2]))


def top_receivers(packets: Sequence[Packet]) -> Iterator[Values]:
    groups = grouped(with_ip(packets), lambda p: (p.minute, p.target))
    rows = [(*key, len(group), size(group)) for key, group in groups]
    yield from _greatest(rows, lambda row: (-row[3], address(row[1])))


def top_talkers(packets: Sequence[Packet]) -> Iterator[Values]:
    groups = grouped(with_ip(packets), lambda p: (p.minute, p.source))
    rows = [(*key, len(group), size(group)) for key, group in groups]
    yield from _greatest(rows, lambda row: (-row[3], address(row[1])))


def traffic_matrix(packets: Sequence[Packet]) -> Iterator[Values]:
    def network(address: str) -> str:
        bits = 16 if ip_address(address).version == 4 else 48
        return str(ip_network(f"{address}/{bits}", strict=False).network_address)

    for key, group in grouped(
        with_ip(packets), lambda p: (p.minute, network(p.source), network(p.target))
    ):
        yield *key, len(group), size(group)


def ttl_changes(packets: Sequence[Packet]) -> Iterator[Values]:
    for key, group in grouped(
        with_ip(packets), lambda p: (p.minute, p.source, p.target, p.protocol)
    ):
        ttls = {p.number_of("ip.ttl" if p.version == 4 else "ipv6.hlim") for p in group}
        if len(ttls) > 1:
            yield *key, len(group), len(ttls), min(ttls), max(ttls)


def tunnels(packets: Sequence[Packet]) -> Iterator[Values]:
    carrying = [(p, _inner(p)) for p in with_ip(packets)]
    inner = {p: ends for p, ends in carrying if ends}
    for key, group in grouped(inner, lambda p: (p.minute, p.source, p.target, *inner[p])):
        yield *key, len(group), size(group)


def _inner(packet: Packet) -> tuple[str, str] | None:
    """Return the addresses of the first IP header inside another, if the tunnel is read."""
    following = packet.layers[1:]
    place = next((n for n, name in enumerate(following) if name in ("ip", "ipv6")), None)
    if place is None or (QUOTES | OTHER_TUNNELS) & set(following[:place]):
        return None
    kind = following[place]
    same = (packet.layers[0] == kind) * 1
    sources = packet.fields.get(f"{kind}.src", [])
    targets = packet.fields.get(f"{kind}.dst", [])
    return (sources[same], targets[same]) if len(sources) > same else None


def udp_jitter(packets: Sequence[Packet]) -> Iterator[Values]:
    """Yield the gaps of every pair of consecutive identifications, by when they begin."""
    gaps: dict[Values, list[float]] = defaultdict(list)
    numbered = [p for p in packets if p.version == 4 and p.is_udp]
    for key, group in grouped(numbered, lambda p: p.flow):
        for first in group:
            for second in group:
                step = (second.number_of("ip.id") - first.number_of("ip.id")) % 65536
                after = second.time_ns - first.time_ns
                if step == 1 and 0 <= after <= 10**9:
                    gaps[first.time // 10, *key].append(after / 1e6)
    for key, values in gaps.items():
        if len(values) >= 10:
            mean, spread = statistics.fmean(values), statistics.stdev(values)
            yield *key, len(values), mean, spread, max(values)


def vlans(packets: Sequence[Packet]) -> Iterator[Values]:
    tagged = [p for p in packets if p.text("vlan.id")]
    for key, group in grouped(tagged, lambda p: (p.minute, p.number_of("vlan.id"))):
        yield *key, len(group), size(group), len({p.text("eth.src") for p in group})


def _greatest(rows: Iterable[Values], key: Callable[[Any], Any]) -> Iterator[Values]:
    """The first twenty rows of each minute, sorted by ``key``."""
    minutes: dict[Any, list[Values]] = defaultdict(list)
    for row in rows:
        minutes[row[0]].append(row)
    for each in minutes.values():
        yield from sorted(each, key=key)[:20]


def address(text: str) -> bytes:
    """Return the bytes by which addresses are ordered; those of IPv4 are mapped."""
    address = ip_address(text)
    return address.packed if address.version == 6 else bytes(10) + b"\xff\xff" + address.packed
