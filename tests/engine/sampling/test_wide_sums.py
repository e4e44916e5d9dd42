"""Sums of integers that exceed 64 bits wrap and are counted; averages do not wrap."""

from __future__ import annotations

import random
from collections import defaultdict
from unittest import mock

import pytest
from tests.engine.sampling.sampled import Packet, Row, Sampled, packet

from gscope.engine.sampling import kernels

BIG = (1 << 63) - 1
QUERY = f"""
SELECT tb, srcIP, destPort, sum(big), sum$(big), avg(big), sum(len)
FROM (SELECT time, time_ns, srcIP, destPort, len, CASE WHEN ttl < 4 THEN {BIG} - ttl
  WHEN ttl < 8 THEN ttl - {BIG} WHEN ttl = 9 THEN NULL ELSE ttl END AS big FROM IP) AS q
GROUP BY time/20 AS tb, srcIP, destPort SUPERGROUP srcIP
HAVING destPort <> 1
CLEANING_WHEN count_distinct$(*) > 4 CLEANING_BY destPort % 2 = 0
"""


def value(ttl: int) -> int | None:
    if ttl < 4:
        return BIG - ttl
    if ttl < 8:
        return ttl - BIG
    return None if ttl == 9 else ttl


def wrapped(total: int) -> int:
    return (total + (1 << 63)) % (1 << 64) - (1 << 63)


class Window:
    """The groups of a supergroup, and how many sums of those that ended have exceeded 64 bits."""

    def __init__(self) -> None:
        self.groups: dict[int, list[int | None]] = {}
        self.exceeded = 0

    def remove(self, port: int) -> None:
        self.exceeded += exceeds(self.groups.pop(port))

    @property
    def values(self) -> list[int | None]:
        return [x for values in self.groups.values() for x in values]


def exceeds(values: list[int | None]) -> bool:
    total = sum(x for x in values if x is not None)
    return wrapped(total) != total


def expected(packets: list[Packet]) -> tuple[list[Row], int]:
    """The rows, and how many sums have exceeded 64 bits."""
    windows: dict[Row, Window] = defaultdict(Window)
    for each in packets:
        window = windows[each["time"] // 20, each["srcIP"]]
        window.groups.setdefault(each["destPort"], []).append(value(each["ttl"]))
        if len(window.groups) > 4:
            for port in [port for port in window.groups if port % 2]:
                window.remove(port)
    rows: list[Row] = []
    count = 0
    for key, window in windows.items():
        count += exceeds(window.values)
        if 1 in window.groups:
            window.remove(1)
        count += window.exceeded + sum(map(exceeds, window.groups.values()))
        for port, values in window.groups.items():
            known = [x for x in values if x is not None]
            held = [x for x in window.values if x is not None]
            rows.append(
                (
                    *(*key, port),
                    wrapped(sum(known)) if known else None,
                    wrapped(sum(held)) if held else None,
                    float(sum(known)) / len(known) if known else None,
                    60 * len(values),
                )
            )
    return rows, count


@pytest.mark.parametrize("rows", [1 << 62, pytest.param(0, marks=pytest.mark.slow)])
def test_sums_that_wrap_are_counted_and_averages_do_not_wrap(rows: int) -> None:
    query = Sampled(QUERY)
    counted = 0
    with mock.patch.object(kernels, "COMPILED_ROWS", rows):
        for seed in range(60):
            chance = random.Random(seed)
            times = sorted(chance.randrange(50 * 10**9) for _ in range(chance.choice((4, 40))))
            packets = [
                packet(
                    at,
                    60,
                    chance.randrange(2),
                    destPort=chance.randrange(7),
                    ttl=chance.randrange(chance.choice((8, 14))),
                )
                for at in times
            ]
            query.wrapped = 0
            found, _ = query.answers(packets)
            wanted, count = expected(packets)
            assert sorted(found, key=repr) == sorted(wanted, key=repr), seed
            assert query.wrapped == count, seed
            counted += count
    assert counted > 100


def test_kernels_of_narrow_values_count_nothing() -> None:
    narrow = Sampled("SELECT tb, sum(len), sum$(len) FROM IP GROUP BY time/20 AS tb")
    assert narrow.node.sampling.wide_sums == ()
