"""Plain loops over what tshark shows: queries that sample, from the rules of their publications."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.engine.sampling.references import (
    ThresholdSampler,
    least_values,
    lossy_counts,
    seed_of,
    splitmix,
)
from tests.library.oracles_ip import address, grouped, size, with_ip
from tests.library.xxh64 import signed_xxh64

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.library.oracles_ip import Values
    from tests.library.tshark import Packet

WIDTH, FREQUENT_PERCENT = 1000, 1
FLOWS = 100
DRAWN, SEED = 20, 1
K, MANY = 64, 50


def by_minute(packets: Sequence[Packet]) -> list[tuple[int, list[Packet]]]:
    """Return the packets with an IP header of each minute, in the order of time."""
    in_order = sorted(with_ip(packets), key=lambda p: p.time_ns)
    return [(p[0].minute, p) for _, p in grouped(in_order, lambda p: (p.minute,))]


def flow_of(packet: Packet) -> Values:
    """Return the columns that make a flow."""
    return packet.protocol, *packet.flow


def in_order_of_rows(packets: Sequence[Packet]) -> list[tuple[Values, int, int]]:
    """Return the flows of a minute with packets and bytes, sorted by their columns."""
    rows = [(key, len(group), size(group)) for key, group in grouped(packets, flow_of)]
    return sorted(rows, key=lambda row: _rank(row[0]))


def _rank(flow: Any) -> Values:
    protocol, source, source_port, target, target_port = flow
    return protocol, address(source), source_port, address(target), target_port


def frequent_flows(packets: Sequence[Packet]) -> Iterator[Values]:
    for minute, group in by_minute(packets):
        for flow, (count, first) in lossy_counts([flow_of(p) for p in group], WIDTH).items():
            missed = first - 1
            if (count + missed) * 100 >= len(group) * FREQUENT_PERCENT:
                yield minute, *flow, count, missed, (count + missed) * 100 / len(group)


def sampled_flows(packets: Sequence[Packet]) -> Iterator[Values]:
    sampler = ThresholdSampler(FLOWS)
    for number, (minute, group) in enumerate(by_minute(packets)):
        if number:
            sampler.next_window()
        flows = in_order_of_rows(group)
        exact = {flow: (count, sent) for flow, count, sent in flows}
        estimates = sampler.window([(flow, float(sent)) for flow, _, sent in flows])
        for flow, estimate in estimates.items():
            yield minute, *flow, *exact[flow], float(estimate), float(sampler.z)


def random_flows(packets: Sequence[Packet]) -> Iterator[Values]:
    for minute, group in by_minute(packets):
        flows = in_order_of_rows(group)
        seed = seed_of(f"{SEED}|drawn_flows|", [minute * 60 * 10**9])
        places = sorted(range(len(flows)), key=lambda place: splitmix(seed, place) >> 1)
        for place in places[:DRAWN]:
            flow, count, sent = flows[place]
            yield minute, *flow, count, sent, len(flows)


def many_sources(packets: Sequence[Packet]) -> Iterator[Values]:
    for minute, group in by_minute(packets):
        hashes: dict[str, set[int]] = defaultdict(set)
        for packet in group:
            hashes[packet.target].add(signed_xxh64(address(packet.source)))
        for target, values in hashes.items():
            least = least_values(list(values), K)
            sources, error = float(len(least)), 0.0
            if len(least) == K:
                sources = (K - 1) * 2.0**64 / (least[-1] + 2.0**63)
                error = sources / math.sqrt(K - 2)
            if sources >= MANY:
                yield minute, target, sources, error
