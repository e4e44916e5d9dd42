"""Windows over a join of which one side is silent for many steps, compared with plain loops."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.capture.replay.test_replay_capture import write_pcap
from tests.golden.driver import Variation, answer
from tests.live.test_run import udp

from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BEGIN = 1_700_000_000
RARE, OFTEN = range(3, 130, 17), range(140)
RANGE, SLIDE = 40, 20
JOIN = "Query j: SELECT l.time AS t, r.len AS len FROM a.UDP l JOIN b.UDP r ON l.time = r.time"
WINDOW = (
    "Query w: SELECT INT(window_end)/1000000000 AS ends, count(*) AS n"
    f" FROM j [RANGE {RANGE} SLIDE {SLIDE} ON t]"
)


@pytest.mark.parametrize("chunks", [4, 20, 60])
def test_windows_over_it_are_those_of_a_loop(
    spark: SparkSession, tmp_path: Path, chunks: int
) -> None:
    files = {}
    for name, seconds in (("a", RARE), ("b", OFTEN)):
        packets = [((BEGIN + second) * 10**9, udp(second)) for second in seconds]
        write_pcap(tmp_path / f"{name}.pcap", packets)
        files[name] = [tmp_path / f"{name}.pcap"]
    context = CompileContext(("a", "b"), is_repeatable=True)
    program = compile_queries([QueryText(f"{JOIN}; {WINDOW}", "q")], context).program
    variation = Variation(
        "paced",
        chunks=chunks,
        batch_rows=200,
        heartbeat_every_tick=True,
        skew_ns=2 * 10**9,
    )
    rows = answer(program, files, variation, spark)["w"]
    matched = [BEGIN + second for second in RARE]
    counts: Counter[int] = Counter()
    for time in matched:
        first = time // SLIDE * SLIDE + SLIDE
        counts.update(end for end in range(first, time + RANGE + 1, SLIDE) if end > time)
    assert sorted(rows) == sorted((str(end), str(n)) for end, n in counts.items())
