"""Windows of a device, whose job is killed.

Each is answered once, with all packets that it holds.
"""

from __future__ import annotations

import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.faults.faulty_run import FaultyRun, Sender
from tests.live.test_run import network

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["network"]

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.spark]

PACKETS = """DEFINE { query_name packets; }
SELECT time, srcPort, len FROM UDP WHERE destPort = 53"""
WINDOWS = {"sliced": (7, 2), "coprime": (5, 3), "kept": (7, 2)}
"""The range and the slide of each query; ``kept`` keeps rows, as it sums FLOAT values."""


def query(name: str) -> str:
    width, slide = WINDOWS[name]
    total = "sum(len*1.0)" if name == "kept" else "sum(len)"
    return f"""DEFINE {{ query_name {name}; }}
SELECT window_end / INTERVAL '1 sec' AS e, srcPort, count(*) AS n, {total} AS s, max(time) AS last
FROM UDP [RANGE {width} SLIDE {slide}] WHERE destPort = 53 GROUP BY srcPort"""


def expected(run: FaultyRun, name: str) -> Iterator[tuple[int, int, int]]:
    """Yield the end of each window and the port of each packet in it."""
    width, slide = WINDOWS[name]
    for row in run.answered("packets"):
        first = row["time"] // slide * slide + slide
        for end in range(first, row["time"] + width + 1, slide):
            yield end, row["srcPort"], row["len"]


@pytest.mark.long
def test_windows_survive_the_death_of_the_job(tmp_path: Path) -> None:
    texts = (PACKETS, *map(query, WINDOWS))
    run = FaultyRun(tmp_path, queries=texts)
    sender = Sender()
    try:
        run.start()
        sender.start()
        for victim in ("job", "java"):
            run.wait_for_lines(700)
            run.kill(victim)
        run.wait_for_lines(700)
        sender.stop()
        assert run.end() == 128 + signal.SIGINT
    finally:
        sender.stop()
        run.close()
    for name in WINDOWS:
        counts: Counter[tuple[int, int]] = Counter()
        totals: Counter[tuple[int, int]] = Counter()
        for end, port, length in expected(run, name):
            counts[end, port] += 1
            totals[end, port] += length
        rows = run.answered(name)
        assert len({(row["e"], row["srcPort"]) for row in rows}) == len(rows)
        assert {(row["e"], row["srcPort"]): row["n"] for row in rows} == counts
        assert {(row["e"], row["srcPort"]): row["s"] for row in rows} == totals
        ends = [row["e"] for row in rows]
        assert ends == sorted(ends)
