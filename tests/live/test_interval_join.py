"""Interval joins of a device.

Each pair once, and in time, whichever steps its two packets are in.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.sources.af_packet.network import DEVICE, send
from tests.live.test_run import Live, network, send_for, udp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["network"]

NEAR_NS = 300_000_000
QUERIES = f"""
DEFINE {{ query_name packets; }} SELECT time_ns, srcPort FROM UDP;
DEFINE {{ query_name by_second; }} SELECT a.time_ns AS first, b.time_ns AS second
FROM UDP a JOIN UDP b
ON a.srcPort = b.srcPort AND b.time BETWEEN a.time AND a.time + 1 AND b.time_ns > a.time_ns;
DEFINE {{ query_name by_instant; }} SELECT a.time_ns AS first, b.time_ns AS second
FROM UDP a LEFT JOIN UDP b
ON a.srcPort = b.srcPort AND b.time_ns BETWEEN a.time_ns + 1 AND a.time_ns + {NEAR_NS}"""

LAST_PORT = 9
LAST = udp(0)[:34] + LAST_PORT.to_bytes(2) + udp(0)[36:]
"""A datagram from a port that no other comes from."""

SECOND = 10**9

pytestmark = [pytest.mark.live, pytest.mark.slow]


def pairs(packets: list[dict[str, int]]) -> Iterator[tuple[str, int, int | None]]:
    """Give the rows of both joins, by nested loops over the packets that the same run reported.

    Another socket would give each packet another time.
    """
    for a in packets:
        first, is_alone = a["time_ns"], True
        for b in packets:
            second = b["time_ns"]
            if a["srcPort"] != b["srcPort"] or second <= first:
                continue
            if second // SECOND <= first // SECOND + 1:
                yield "by_second", first, second
            if second <= first + NEAR_NS:
                is_alone = False
                yield "by_instant", first, second
        if is_alone:
            yield "by_instant", first, None


def rows_of(running: Live) -> dict[str, list[dict[str, Any]]]:
    """Return the rows so far, by query."""
    rows: dict[str, list[dict[str, Any]]] = {"packets": [], "by_second": [], "by_instant": []}
    for line in list(running.lines):
        row = json.loads(line)
        rows[row.pop("query")].append(row)
    return rows


def test_pairs_across_steps_come_once_and_while_the_link_is_silent(tmp_path: Path) -> None:
    often = ("--heartbeat-interval", "200ms", "-o", "ndjson", "--work-dir", tmp_path)
    running = Live("-e", QUERIES, "-i", f"main={DEVICE}", *often)
    try:
        # There is no heading to wait for.
        running.wait_for_lines(1, lambda: send([udp(1)]))
        send_for(3)
        # The link is silent from here on: the clock closes the intervals of all that was sent.
        send([LAST])
        running.wait_for(lambda: rows_of(running)["packets"][-1]["srcPort"] == LAST_PORT)
        packets = rows_of(running)["packets"]
        expected = Counter(pairs(packets))
        running.wait_for_lines(len(packets) + expected.total())
    finally:
        code = running.end()
    assert code == 128 + signal.SIGINT
    assert f"{len(packets):,} packets received = {len(packets):,} accepted;" in running.summary
    assert "late" not in running.summary
    found = rows_of(running)
    assert found["packets"] == packets
    assert len({row["first"] // SECOND for row in found["by_second"]}) > 2
    assert expected == Counter(
        (query, row["first"], row["second"])
        for query in ("by_second", "by_instant")
        for row in found[query]
    )
