"""Counts of single packets while the rate of a live capture moves.

They are held beside a count of every packet.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from tests.capture.live.test_overload import EPOCH_NS, captured, overload

from gscope.capture.log.log import read_log
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program_sampling import RATE_COLUMN
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    from pathlib import Path

QUERIES = f"""
DEFINE {{ query_name total; }} SELECT tb, count(*) FROM UDP GROUP BY time_ns/{EPOCH_NS} as tb;
DEFINE {{ query_name every; }}
SELECT tb, srcPort, count(*) FROM UDP GROUP BY time_ns/{EPOCH_NS} as tb, srcPort NOT SAMPLED;
"""


@pytest.mark.live
def test_a_packet_stands_for_those_that_its_rate_leaves_out_on_every_lane(tmp_path: Path) -> None:
    context = CompileContext(("main",), {}, samples=True, follows_load=True)
    program, folder = compile_queries([QueryText(QUERIES, "q")], context).program, tmp_path / "log"
    with overload():
        summary = captured(folder, program, 3, 2.0)
    assert summary.interfaces[0].dropped == 0
    full = 0
    kept: Counter[float] = Counter()
    for message in read_log(folder):
        if isinstance(message, Batch):
            for row in pq.read_table(folder / message.path).to_pylist():
                if message.stream == "every@main":
                    full += row["count0"]
                else:
                    kept[row[RATE_COLUMN]] += row["count0"]
    assert len(kept) > 2
    assert sum(kept.values()) < full
    estimate = sum(number / rate for rate, number in kept.items())
    error = math.sqrt(sum((1 - rate) / rate**2 * number for rate, number in kept.items()))
    assert error > 0
    assert abs(estimate - full) < 6 * error
