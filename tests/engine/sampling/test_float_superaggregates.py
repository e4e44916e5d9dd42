"""Superaggregates of FLOAT, as groups come and go.

They are of infinities, NaN, NULL and very different sizes.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from unittest import mock

import pytest
from tests.engine.sampling.sampled import Packet, Row, Sampled, packet

from gscope.engine.sampling import kernels

CODES: dict[int, float | None] = {
    0: math.inf,
    1: -math.inf,
    2: math.nan,
    3: 1e17,
    4: -1e17,
    5: None,
    6: 1e300,
}
"""The values of x that a TTL stands for; others stand for a quarter of themselves."""

X = """CASE WHEN ttl = 0 THEN 1e300 * 1e300 WHEN ttl = 1 THEN -1e300 * 1e300
 WHEN ttl = 2 THEN 1e300 * 1e300 * 0.0 WHEN ttl = 3 THEN 1e17 WHEN ttl = 4 THEN -1e17
 WHEN ttl = 5 THEN NULL WHEN ttl = 6 THEN 1e300 ELSE FLOAT(ttl) / 4.0 END"""
QUERY = f"""
SELECT tb, srcIP, destPort, x, count(*), sum$(x), max$(x), min$(x), count$(x),
  Kth_smallest_value$(x, 2), count_distinct$(x)
FROM (SELECT time, time_ns, srcIP, destPort, ttl, {X} AS x FROM IP) AS q
GROUP BY time/20 AS tb, srcIP, destPort, x SUPERGROUP srcIP
HAVING destPort <> 1
CLEANING_WHEN count_distinct$(*) > 6 CLEANING_BY x < 1e9 AND x > -1e9 OR destPort = 2
"""


def rank(x: float) -> tuple[bool, float]:
    """NaN is greater than all numbers."""
    return (True, 0.0) if math.isnan(x) else (False, x)


def least_values(values: list[float]) -> list[float]:
    return sorted({x for x in values if not math.isnan(x)})


def expected(packets: list[Packet]) -> dict[Row, Row]:
    """Each group that is left, with the values x of its supergroup: computed from all packets."""
    windows: dict[Row, dict[Row, list[float | None]]] = defaultdict(dict)
    for each in packets:
        groups = windows[each["time"] // 20, each["srcIP"]]
        x = CODES.get(each["ttl"], each["ttl"] / 4)
        groups.setdefault((each["destPort"], repr(x)), []).append(x)
        if len(groups) > 6:
            for (port, name), values in list(groups.items()):
                first = values[0]
                stays = first is not None and -1e9 < first < 1e9  # NaN is not less than 1e9
                if not stays and port != 2:
                    del groups[port, name]
    found: dict[Row, Row] = {}
    for window, groups in windows.items():
        left = {key: values for key, values in groups.items() if key[0] != 1}
        held = [x for values in left.values() for x in values if x is not None]
        for key, values in left.items():
            found[(*window, *key)] = (len(values), held)
    return found


def stream(seed: int) -> list[Packet]:
    chance = random.Random(seed)
    times = sorted(chance.randrange(50 * 10**9) for _ in range(chance.choice((4, 40, 90))))
    return [
        packet(
            at,
            60,
            chance.randrange(2),
            destPort=chance.randrange(4),
            ttl=chance.choice((0, 1, 2, 3, 3, 4, 5, 6, 8, 9, 10, 11, 12)),
        )
        for at in times
    ]


@pytest.mark.parametrize("rows", [1 << 62, pytest.param(0, marks=pytest.mark.slow)])
def test_they_are_those_of_the_groups_that_live(rows: int) -> None:
    query = Sampled(QUERY)
    wide = 0
    with mock.patch.object(kernels, "COMPILED_ROWS", rows):
        for seed in range(120):
            packets = stream(seed)
            answers, _ = query.answers(packets)
            wanted = expected(packets)
            assert {(*row[:3], repr(row[3])) for row in answers} == set(wanted)
            for row in answers:
                count, held = wanted[(*row[:3], repr(row[3]))]
                assert row[4] == count
                assert row[8] == len(held)
                check_sum(row[5], held)
                assert repr(row[6]) == repr(max(held, key=rank, default=None))
                assert repr(row[7]) == repr(min(held, key=rank, default=None))
                values = least_values(held)
                assert row[9] == (values[1] if len(values) > 1 else math.inf)
                assert row[10] == len({repr(x) for x in held})
                wide += any(map(math.isfinite, held))
    assert wide > 500


def check_sum(found: float | None, held: list[float]) -> None:
    """The sum is exact but for the rounding of the values that are in it."""
    if not held:
        assert found is None
        return
    assert found is not None
    if all(map(math.isfinite, held)):
        assert abs(found - math.fsum(held)) <= 1e-12 * sum(map(abs, held))
        return
    total = sum(held)
    assert found == total or (math.isnan(found) and math.isnan(total))
