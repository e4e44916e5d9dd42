"""Thresholds that move below estimates of packets.

Each packet counts by the rate at which it was kept. Plain loops over all packets, their hashes and
the thresholds by which each was tested: of a packet that was kept at the rate p, 1/p packets are
counted. Numbers of packets and sums equal those loops, bit for bit, and so do intervals of single
packets.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import pytest
from tests.differential.moving import PLAIN, SEED, moved
from tests.support.long_form import cases

from gscope.queries.plan.program_sampling import SamplingMethod
from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD, HashKey, hash_packet, hash_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.differential.moving import Moved
    from tests.differential.traffic import Row
    from tests.golden.driver import Row as Text
    from tests.golden.driver import Variation
    from tests.support.shared_spark import SharedSpark

QUERIES = """
DEFINE { query_name totals; visibility 'external'; }
SELECT tb, count(*) as n, sum(len) as l, avg(len) as m, n_low, n_high, l_low, l_high, m_low,
sample_groups, sample_rate FROM TCP GROUP BY time/3 as tb;
DEFINE { query_name coarse; } SELECT tm, sum(n) as n, sum(l) FROM totals GROUP BY tb/4 as tm;
DEFINE { query_name ports; sampling 'tuples'; }
SELECT tb, destPort, count(*) as n, sum(len) FROM UDP GROUP BY time/3 as tb, destPort;
DEFINE { query_name floats; }
SELECT tb, sum(len * 0.3) as f, avg(len * 0.3), f_low, sample_rate FROM UDP GROUP BY time/3 as tb;
DEFINE { query_name chosen; } SELECT time, srcPort, destPort, len FROM TCP SAMPLE BY srcPort;
DEFINE { query_name of_hosts; }
SELECT tb, destPort, count(*) as n, sum(len), sample_rate FROM chosen
GROUP BY time/3 as tb, destPort
"""
EPOCH_S = 3
Z2 = 1.959963984540054 * 1.959963984540054
TCP, UDP = 6, 17

Kept = list[tuple[float, "Row"]]
"""Packets, each with the rate at which it was kept."""


def kept(run: Moved, query: str, protocol: int, *keys: str) -> dict[tuple[int, ...], Kept]:
    """The packets of each epoch and group that were kept."""
    key = HashKey.of_seed(SEED)
    lfta = run.lfta(f"{query}.groups")
    sampling = run.program.lfta(lfta).sampling
    assert sampling is not None
    rows, late = run.captured.decoded()
    assert not any(late.values())
    groups = defaultdict(list)
    for interface, packets in rows.items():
        tested = run.tested[interface, lfta]
        assert len(tested) == len(packets)
        for number, (limit, row) in enumerate(zip(tested, packets, strict=True)):
            if row.get("protocol") != protocol or "destPort" not in row:
                continue
            if sampling.method is SamplingMethod.TUPLES:
                hashed = hash_packet(number, key.of_interface(interface), key)
            else:
                types = [term.type for term in sampling.terms]
                hashed = hash_terms([row["srcPort"]], types, key)
            if hashed <= limit:
                epoch = row["time"] // EPOCH_S
                rate = (limit + 1) / 2**64
                groups[epoch, *(row[name] for name in keys)].append((rate, row))
    return groups


def by_rate(packets: Kept, value: Callable[[Row], float]) -> list[tuple[float, float]]:
    """Each rate, and the sum of the values of the packets that were kept at it, ascending."""
    rates = sorted({rate for rate, _ in packets})
    values = [[value(row) for own, row in packets if own == rate] for rate in rates]
    return [(rate, reduce(add, sorted(each))) for rate, each in zip(rates, values, strict=True)]


def parts(packets: Kept, value: Callable[[Row], int]) -> tuple[int, int]:
    """The estimated sum of integers: its whole part, and what it lacks in units of 2**-32."""
    whole = rest = 0
    for rate, total in by_rate(packets, value):
        scaled = Fraction(int(total)) if rate == 1 else Fraction(total * (1 / rate))
        whole += math.floor(scaled)
        rest += math.floor((scaled - math.floor(scaled)) * 2**32)
    plain = sum(value(row) / rate for rate, row in packets)
    assert abs(whole + rest / 2**32 - plain) <= 1e-9 * max(1, abs(plain))
    return whole, rest


def integer(packets: Kept, value: Callable[[Row], int]) -> int:
    whole, rest = parts(packets, value)
    return math.floor(whole + Fraction(rest, 2**32) + Fraction(1, 2))


def number(packets: Kept, value: Callable[[Row], int]) -> float:
    whole, rest = parts(packets, value)
    return whole + rest * 2.0**-32


def spread(packets: Kept, value: Callable[[Row], float]) -> float:
    """The sum of values, each times (1 - p)/p² of its packet."""
    sums = [s * ((1 - p) / (p * p)) for p, s in by_rate(packets, value)]
    return reduce(add, sorted(sums))


def one(_: Row) -> int:
    return 1


def length(row: Row) -> int:
    return int(row["len"])


def halves(packets: Kept) -> float:
    """The same of the squares of lengths, of which the lower and upper 32 bits are summed apart."""
    low = spread(packets, lambda row: length(row) ** 2 & 0xFFFFFFFF)
    return low + spread(packets, lambda row: length(row) ** 2 >> 32) * 2.0**32


def ends(value: int, squared: float, least: int) -> tuple[int, int]:
    if not squared > 0:
        return value, value
    half = math.sqrt(squared)
    return max(math.floor(value - half), least), math.ceil(value + half)


def totals(run: Moved) -> Iterator[Text]:
    for (epoch,), packets in kept(run, "totals", TCP).items():
        n, size = integer(packets, one), integer(packets, length)
        mean = number(packets, length) / number(packets, one)
        lengths = sum(length(row) for _, row in packets)
        counts = ends(n, spread(packets, one) * Z2, len(packets))
        sizes = ends(size, halves(packets) * Z2, lengths)
        mixed = 2.0 * mean * spread(packets, length)
        residual = (halves(packets) - mixed) + mean * mean * spread(packets, one)
        estimated = number(packets, one)
        squared = residual / (estimated * estimated) * Z2
        low = mean - math.sqrt(squared) if squared > 0 else mean
        rate = min(rate for rate, _ in packets)
        values = (epoch, n, size, mean, *counts, *sizes, low, len(packets), rate)
        yield tuple(map(repr, values))


def coarse(run: Moved) -> Iterator[Text]:
    sums: dict[int, tuple[int, int]] = {}
    for (epoch,), packets in kept(run, "totals", TCP).items():
        n, size = sums.get(epoch // 4, (0, 0))
        sums[epoch // 4] = n + integer(packets, one), size + integer(packets, length)
    return ((str(epoch), *map(str, each)) for epoch, each in sums.items())


def ports(run: Moved) -> Iterator[Text]:
    for group, packets in kept(run, "ports", UDP, "destPort").items():
        yield tuple(map(str, (*group, integer(packets, one), integer(packets, length))))


def of_hosts(run: Moved) -> Iterator[Text]:
    for group, packets in kept(run, "of_hosts", TCP, "destPort").items():
        least = min(rate for rate, _ in packets)
        values = (*group, integer(packets, one), integer(packets, length), least)
        yield tuple(map(repr, values))


def floats(run: Moved) -> Iterator[Text]:
    def value(row: Row) -> float:
        return length(row) * 0.3

    def squared(row: Row) -> float:
        return value(row) * value(row)

    for (epoch,), packets in kept(run, "floats", UDP).items():
        total = reduce(add, sorted(s * (1 / p) for p, s in by_rate(packets, value)))
        width = spread(packets, squared) * Z2
        low = total - math.sqrt(width) if width > 0 else total
        least = min(rate for rate, _ in packets)
        values = (epoch, total, total / number(packets, one), low, least)
        yield tuple(map(repr, values))


EXPECTED = {
    "totals": totals,
    "coarse": coarse,
    "ports": ports,
    "floats": floats,
    "of_hosts": of_hosts,
}


def check(seed: int, shared: SharedSpark, variation: Variation, packets: int) -> Moved:
    run = moved(QUERIES, seed, shared, variation, packets)
    whole = replace(
        run, tested={at: [FULL_THRESHOLD] * len(each) for at, each in run.tested.items()}
    )
    for query, expected in EXPECTED.items():
        assert Counter(run.full[query]) == Counter(expected(whole)), query
        assert Counter(run.answers[query]) == Counter(expected(run)), query
    return run


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", cases((5,), (1, 2, 3, 4, *range(6, 12))))
def test_a_packet_counts_by_the_rate_at_which_it_was_kept(
    seed: int, shared_spark: SharedSpark
) -> None:
    variation = replace(
        PLAIN,
        seed=seed,
        block_bytes=1024,
        is_interpreted=seed % 3 == 0,
        crashes=(seed + 1) % 3,
        table_slots=4 if seed % 2 else None,
        heartbeat_every_tick=seed % 2 == 0,
        chunks=(8, 2)[seed % 2],
        batch_rows=(20, 7)[seed % 2],
    )
    run = check(seed, shared_spark, variation, 160)
    if seed == 5:
        rates = [{rate for rate, _ in each} for each in kept(run, "totals", TCP).values()]
        assert max(map(len, rates)) > 1
