"""Superaggregates and cleaning equal an operator that computes everything again for each packet."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from tests.engine.sampling.sampled import Packet, Row, Sampled, packet

from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import TopNode
from gscope.queries.plan.sampling_operator import SampleNode

if TYPE_CHECKING:
    from collections.abc import Callable

Groups = dict[Row, list[Packet]]

GREATEST = (1 << 63) - 1


@dataclass
class Window:
    """The live groups of one supergroup, each with all of its packets."""

    groups: Groups = field(default_factory=dict)

    @property
    def packets(self) -> list[Packet]:
        return [each for group in self.groups.values() for each in group]

    def values(self, name: str) -> list[int]:
        return [each[name] for each in self.packets if each[name] is not None]

    def total(self, name: str) -> int | None:
        values = self.values(name)
        return sum(values) if values else None

    def least(self, name: str) -> int | None:
        return min(self.values(name), default=None)

    def most(self, name: str) -> int | None:
        return max(self.values(name), default=None)

    def first(self, name: str) -> int | None:
        group = next(iter(self.groups.values()), None)
        return None if group is None else group[0][name]

    def kth(self, place: int, rank: int) -> int:
        """The rank-th smallest different value of the key at ``place``."""
        smallest = sorted({key[place] for key in self.groups})[:rank]
        return smallest[-1] if len(smallest) == rank else GREATEST


@dataclass(frozen=True)
class Query:
    """A query, and its clauses as functions of the window and a packet or group."""

    text: str
    where: Callable[[Window, Packet], bool]
    cleaning_when: Callable[[Window], bool]
    cleaning_by: Callable[[Window, Row, list[Packet]], bool]
    having: Callable[[Window, Row, list[Packet]], bool]
    row: Callable[[Window, Row, list[Packet]], Row]

    def answers(self, packets: list[Packet]) -> list[Row]:
        windows: dict[tuple[int, int], Window] = {}
        for each in packets:
            window = windows.setdefault((each["time"] // 20, each["srcIP"]), Window())
            if not self.where(window, each):
                continue
            window.groups.setdefault((each["destPort"],), []).append(each)
            if self.cleaning_when(window):
                self.thin(window, self.cleaning_by)
        found = []
        for (tb, src), window in windows.items():
            self.thin(window, self.having)
            found += [
                (tb, src, *key, *self.row(window, key, g)) for key, g in window.groups.items()
            ]
        return found

    @staticmethod
    def thin(window: Window, keeps: Callable[[Window, Row, list[Packet]], bool]) -> None:
        for key, group in list(window.groups.items()):
            if not keeps(window, key, group):
                del window.groups[key]


def lengths(group: list[Packet]) -> list[int]:
    return [each["len"] for each in group]


def above(value: int | None, other: int | None) -> bool:
    """Whether a comparison with NULL holds: it does not."""
    return value is not None and other is not None and value > other


SHOWN = (
    "sum$(win), count$(win), count$(*), min$(len), max$(win), first$(win), count_distinct$(*),"
    " count_distinct$(destPort)"
)
SOURCE = (
    "(SELECT time, time_ns, srcIP, destPort, len, CASE WHEN ttl > 50 THEN ttl END AS win"
    " FROM IP) AS q"
)


def shown(window: Window, _: Row, group: list[Packet]) -> Row:
    return (
        len(group),
        window.total("win"),
        len(window.values("win")),
        len(window.packets),
        window.least("len"),
        window.most("win"),
        window.first("win"),
        len(window.groups),
        len(window.groups),
    )


QUERIES = [
    Query(
        f"SELECT tb, srcIP, destPort, count(*), {SHOWN} FROM {SOURCE}"
        " WHERE count$(*) < 30 OR len > min$(len)"
        " GROUP BY time/20 AS tb, srcIP, destPort SUPERGROUP srcIP"
        " HAVING sum(len) * 9 > max$(len) CLEANING_WHEN count_distinct$(*) > 5"
        " CLEANING_BY destPort <= Kth_smallest_value$(destPort, 2) OR max(len) = max$(len)",
        lambda w, p: len(w.packets) < 30 or above(p["len"], w.least("len")),
        lambda w: len(w.groups) > 5,
        lambda w, k, g: k[0] <= w.kth(0, 2) or max(lengths(g)) == w.most("len"),
        lambda w, k, g: above(sum(lengths(g)) * 9, w.most("len")),
        shown,
    ),
    Query(
        f"SELECT tb, srcIP, destPort, count(*), {SHOWN} FROM {SOURCE}"
        " WHERE destPort < 25 AND destPort <= Kth_smallest_value$(destPort, 4)"
        " GROUP BY time/20 AS tb, srcIP, destPort SUPERGROUP BY tb, srcIP"
        " HAVING NOT (count(*) < 2 AND count$(*) > 3)"
        " CLEANING_WHEN sum$(win) > 900 CLEANING_BY destPort > Kth_smallest_value$(destPort, 1)",
        lambda w, p: p["destPort"] < 25 and p["destPort"] <= w.kth(0, 4),
        lambda w: above(w.total("win"), 900),
        lambda w, k, g: k[0] > w.kth(0, 1),
        lambda w, k, g: not (len(g) < 2 and len(w.packets) > 3),
        shown,
    ),
    Query(
        f"SELECT tb, srcIP, destPort, count(*), {SHOWN} FROM {SOURCE}"
        " GROUP BY time/20 AS tb, srcIP, destPort SUPERGROUP srcIP"
        " HAVING first$(win) IS NULL OR min(len) > min$(len) OR count_distinct$(destPort) < 3"
        " CLEANING_WHEN max$(win) - first$(win) > 100 CLEANING_BY max(win) < max$(win)",
        lambda w, p: True,
        lambda w: above(
            None
            if w.most("win") is None or w.first("win") is None
            else (w.most("win") or 0) - (w.first("win") or 0),
            100,
        ),
        lambda w, k, g: above(
            w.most("win"), max((e["win"] for e in g if e["win"] is not None), default=None)
        ),
        lambda w, k, g: (
            w.first("win") is None or above(min(lengths(g)), w.least("len")) or len(w.groups) < 3
        ),
        shown,
    ),
]


@pytest.mark.parametrize("query", QUERIES, ids=["kth", "sums", "extremes"])
def test_superaggregates_are_those_of_the_live_groups(query: Query) -> None:
    sampled = Sampled(query.text)
    for number in range(100):
        chance = random.Random(number)
        times = sorted(chance.randrange(50 * 10**9) for _ in range(chance.choice((3, 30, 120))))
        packets = [
            packet(
                at,
                chance.choice((40, 60, 900, chance.randrange(1500))),
                chance.randrange(2),
                destPort=chance.randrange(chance.choice((4, 30))),
                ttl=chance.randrange(256),
            )
            for at in times
        ]
        for each in packets:
            each["win"] = each["ttl"] if each["ttl"] > 50 else None
        found, _ = sampled.answers(packets)
        assert sorted(found, key=repr) == sorted(query.answers(packets), key=repr), (
            f"stream {number}"
        )


def test_a_superaggregate_in_order_by_alone_makes_a_sample() -> None:
    text = (
        "SELECT tb, len FROM IP GROUP BY time/20 AS tb, len ORDER BY sum(len) DIV sum$(len) LIMIT 1"
    )
    nodes = compile_queries([QueryText(text, "q")], CompileContext(("a",))).program.nodes
    assert [type(node) for node in nodes] == [SampleNode, TopNode]
