"""Makes a disagreement small.

One query and what it reads, plain settings, few packets, little text.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.differential.harness import PLAIN, SOURCE, Disagreement, Scenario, alone, compare
from tests.differential.simpler import simpler_queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


def minimised(
    scenario: Scenario, found: Disagreement, session: SparkSession, budget_s: float
) -> tuple[Scenario, Disagreement]:
    """The smallest scenario that was found within ``budget_s`` seconds and still disagrees."""
    ends = time.monotonic() + budget_s
    best = scenario, found
    # Pairs that failed together may fail only together: then all queries stay.
    for query in scenario.queries:
        if query.name == found.query:
            best = _disagrees(alone(scenario, query), found.query, session) or best
    progress = True
    while progress and time.monotonic() < ends:
        progress = False
        for candidate in _simpler(best[0]):
            if time.monotonic() > ends:
                break
            smaller = _disagrees(candidate, found.query, session)
            if smaller is not None and _is_refused(smaller[1]) == _is_refused(found):
                best, progress = smaller, True
                break
    return best


def report(scenario: Scenario, found: Disagreement) -> str:
    """A disagreement as text: queries, settings, packets and both answers."""
    lines = [f"{found.query}: {found.what}", ""]
    lines += [query.text for query in scenario.queries]
    lines += ["", str(scenario.variation), f"step rows {scenario.step_rows}"]
    lines += [f"skew {scenario.traffic.skew_ns} ns"]
    lines += [
        f"{packet.interface} {packet.time_ns} {packet.wirelen} {packet.data.hex()}"
        for packet in scenario.traffic.packets[:12]
    ]
    lines += [f"{len(scenario.traffic.packets)} packets", "expected, and not found:"]
    lines += [f"  {row}" for row in found.expected]
    lines += ["found, and not expected:", *(f"  {row}" for row in found.found)]
    return "\n".join(lines)


def _disagrees(
    scenario: Scenario, query: str, session: SparkSession
) -> tuple[Scenario, Disagreement] | None:
    try:
        found = compare(scenario, session).disagreements
    except LookupError:
        # a query that reads what was simplified away has no meaning
        return None
    same = next((each for each in found if query in each.query.split() or not each.query), None)
    return None if same is None else (scenario, same)


def _is_refused(found: Disagreement) -> bool:
    """Whether the query was not accepted; a query that lost what it reads is not either."""
    return SOURCE in found.what


def _simpler(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios that are smaller by one thing, the most promising first."""
    plain = replace(PLAIN, skew_ns=scenario.variation.skew_ns)
    if scenario.variation != plain:
        yield replace(scenario, variation=plain, step_rows=None)
    if scenario.step_rows is not None:
        yield replace(scenario, step_rows=None)
    packets = scenario.traffic.packets
    size = len(packets) // 2
    while size:
        for start in range(0, len(packets), size):
            rest = packets[:start] + packets[start + size :]
            yield replace(scenario, traffic=replace(scenario.traffic, packets=rest))
        size = size // 2 if len(packets) < 16 or size > 2 else 0
    for queries in simpler_queries(scenario.queries):
        yield replace(scenario, queries=queries)
