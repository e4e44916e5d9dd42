"""Counts of single packets while the rate of a live capture moves, beside a count of every packet."""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import TYPE_CHECKING
from unittest import mock

import pyarrow.parquet as pq
import pytest
from tests.capture.live.test_overload import EPOCH_NS, captured

from gscope.capture.live.live_interface import LiveInterface
from gscope.capture.log.log import read_log
from gscope.capture.shedding.load_control import InterfaceLoad
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
    begins: list[float] = []
    falls: list[float] = []

    def load(_: LiveInterface) -> InterfaceLoad:
        # Overloaded until the rate has fallen three times, however slow this machine is.
        now = time.monotonic()
        begins.append(now)
        is_overloaded = now - begins[0] > 0.5 and len(falls) < 3
        if is_overloaded and (not falls or now - falls[-1] > 0.15):
            falls.append(now)
        return InterfaceLoad(0.9 if is_overloaded else 0.1, 0, (0,))

    with mock.patch.object(LiveInterface, "load", load):
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
