"""The order of partitioning sets: what explain predicts against rows that a plain loop counts."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.partitioning.plans import query_text
from benchmarks.partitioning.set_orders import (
    QUERY_SETS,
    Ranked,
    differing,
    sent,
    sent_text,
)
from benchmarks.partitioning.traffic import GSQL, parts, traffic
from benchmarks.sampling.connections import BEGIN_S

from gscope.queries.analysis.partitioning.explained import explain_partitioning
from gscope.queries.analysis.partitioning.given import given_set
from gscope.queries.analysis.partitioning.traffic import Counts
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HOSTS = 2
PACKETS = traffic(50_000)
WIDTHS = {
    "flows": 2 * 16 + 2 * 8,
    "heavy_flows": 16 + 2 * 8,
    "flow_pairs": 16 + 3 * 8,
    "suspicious": 2 * 16 + 6 * 8,
    "subnet_stats": 2 * 16 + 3 * 8,
    "jitter": 2 * 16 + 4 * 8,
    "packets": 2 * 16 + 5 * 8,
}
"""Bytes of a row of each query: 16 for an address, 8 for a number."""

Packet = tuple[float, int, int, int, int, int, int]
"""Seconds, addresses, ports, sequence number, flags."""


@cache
def packets() -> list[Packet]:
    columns = (
        *(PACKETS.at, PACKETS.source, PACKETS.target, PACKETS.source_port),
        *(PACKETS.target_port, PACKETS.sequence, PACKETS.flags),
    )
    return list(zip(*(each.tolist() for each in columns), strict=True))


def shares(by: str) -> list[list[Packet]]:
    found: list[list[Packet]] = [[] for _ in range(HOSTS)]
    for packet, host in zip(packets(), parts(PACKETS, by, HOSTS).tolist(), strict=True):
        found[host].append(packet)
    return found


def rows(share: Sequence[Packet]) -> dict[str, int]:
    """Count the rows of each query over some packets."""
    flows: Counter[tuple[int, int, int]] = Counter()
    flags: dict[tuple[int, ...], int] = {}
    subnets = set()
    times: dict[tuple[int, ...], list[float]] = {}
    for at, source, target, port, other_port, sequence, flag in share:
        second = int(at) + BEGIN_S
        key = (source, target, port, other_port)
        flows[second // 60, source, target] += 1
        flags[second, *key] = flags.get((second, *key), 0) | flag
        subnets.add((second // 60, source // 16, target))
        times.setdefault((second // 60, *key, sequence), []).append(at)
    heavy = {(minute, source) for minute, source, _ in flows}
    return {
        "flows": len(flows),
        "heavy_flows": len(heavy),
        "flow_pairs": sum((minute - 1, source) in heavy for minute, source in heavy),
        "suspicious": sum(each == 41 for each in flags.values()),
        "all suspicious": len(flags),
        "subnet_stats": len(subnets),
        "jitter": sum(
            later - earlier > 1
            for (*key, sequence), found in times.items()
            for later in times.get((*key, sequence + 1), ())
            for earlier in found
        ),
        "packets": len(share),
    }


@cache
def rows_of_hosts(by: str) -> list[dict[str, int]]:
    return [rows(share) for share in shares(by)]


@cache
def counts() -> Counts:
    """Return what a run of all packets counts."""
    return Counts(len(PACKETS.at), rows(packets()))


def explained(names: Iterable[str], given: str | None = None) -> dict[str, Any]:
    text = ";\n".join(map(query_text, names))
    compiled = compile_queries([QueryText(text, "")], CompileContext(("p0",)))
    return explain_partitioning(
        compiled.stages[0][1],
        tuple(name for name, _ in compiled.program.results),
        HOSTS,
        None if given is None else given_set(given, "test"),
        counts(),
    )


@pytest.mark.parametrize("by", [by for by in GSQL if GSQL[by]])
@pytest.mark.parametrize("queries", QUERY_SETS)
def test_hosts_send_what_explain_places(queries: str, by: str) -> None:
    names = QUERY_SETS[queries]
    shown = explained(names, ", ".join(GSQL[by]))
    sending = {each["query"] for each in shown["operators"] if each["received"]}
    assert sending == {sent(name, by) for name in names}


@pytest.mark.parametrize("by", GSQL)
def test_a_host_answers_what_it_sends(by: str) -> None:
    compiled = compile_queries([QueryText(sent_text(by), "")], CompileContext(("p0",)))
    found = {name for name, _ in compiled.program.results}
    assert found == {sent(name, by) for name in QUERY_SETS["D5 to D8 together"]}


@pytest.mark.parametrize(("queries", "first"), [("D5", "flow"), ("D7", "subnet"), ("D8", "source")])
def test_the_predicted_order_is_that_of_counted_rows(queries: str, first: str) -> None:
    """Two hosts; rows are counted by a plain loop over the share of each."""
    by_set = {candidate: by for by, candidate in GSQL.items()}
    shown = explained(QUERY_SETS[queries])
    found = []
    for each in shown["candidates"]:
        by = by_set[tuple(each["set"])]
        of_hosts = rows_of_hosts(by)
        sizes = []
        for name in QUERY_SETS[queries]:
            query = counted = sent(name, by)
            if by == "none" and name == "jitter":
                query = counted = "packets"
            elif by == "none" and name == "suspicious":
                counted = "all suspicious"
            sizes.append(WIDTHS[query] * sum(of_host[counted] for of_host in of_hosts))
        found.append(candidate(by, (each["cost"], each["total"]), (max(sizes), sum(sizes))))
    assert found[0].candidate == first
    for by_sum in (False, True):
        assert differing(found, by_sum=by_sum) == ([], [])


def candidate(name: str, predicted: tuple[float, float], measured: tuple[float, float]) -> Ranked:
    return Ranked("", HOSTS, name, *predicted, *measured, 0, 0.0)


def test_pairs_in_another_order_are_told_from_ties() -> None:
    one, other = candidate("a", (1, 2), (3, 9)), candidate("b", (1, 3), (3.01, 8))
    assert differing([one, other], by_sum=False) == ([], [])
    assert differing([one, other], by_sum=True) == ([(one, other)], [])
    # Predicted after ``other``, and measured 0.3 % before it.
    third = candidate("c", (2, 2), (3, 8))
    assert differing([other, third], by_sum=False) == ([], [(other, third)])
    # Two that were predicted to be equal, and are not; two that are equal in one operator.
    fourth, fifth = candidate("d", (1, 3), (4, 4)), candidate("e", (1, 4), (4, 5))
    assert differing([other, fourth], by_sum=False) == ([(other, fourth)], [])
    assert differing([fourth, fifth], by_sum=False) == ([], [])
    assert differing([fourth, candidate("f", (1, 2), (4, 5))], by_sum=False)[0]
