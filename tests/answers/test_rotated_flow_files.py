"""Rows over a rotated set of files of nfcapd, beside exports on another interface."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.flows.exports import EXPORTED_S, capture_of, udp_packet, v5, v5_record
from tests.capture.sources.nfcapd.flow_files import (
    BZ2,
    LZ4,
    PLAIN,
    addresses,
    flow_file,
    generic,
    record,
)
from tests.golden.driver import COMPILED, INTERPRETED, answer, replayed

from gscope.capture.sources.files.backward_steps import BackwardSteps
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.golden.driver import Variation

BY_EPOCH = """
SELECT tb, srcIP, count(*) AS flows, sum(packets) AS p, min(time) AS begin_, max(time) AS end_
FROM FLOW GROUP BY time/10 AS tb, srcIP
"""


@pytest.mark.spark
@pytest.mark.parametrize("variation", [COMPILED, INTERPRETED], ids=lambda v: v.name)
@pytest.mark.parametrize("is_sorted", [False, True])
def test_epochs_go_on_over_files(
    variation: Variation, is_sorted: bool, tmp_path: Path, spark: SparkSession
) -> None:
    """Each epoch has one row of a source, whatever the files.

    None is late in a file by another order.
    """
    chance = random.Random(4)
    times_ms = sorted(EXPORTED_S * 1000 + chance.randrange(60_000) for _ in range(900))
    flows = [(ms, f"10.0.0.{chance.randrange(5)}", chance.randrange(100)) for ms in times_ms]
    parts = [flows[:250], flows[250:255], flows[255:]]
    paths: list[Path] = []
    for part, compression in zip(parts, (PLAIN, BZ2, LZ4), strict=True):
        # As nfdump -O writes them: by anything but the time of reception.
        given = sorted(part, key=lambda flow: flow[2]) if is_sorted else part
        contents = [
            record(generic(ms, counts=(packets, 0)), addresses(source, "10.9.9.9"))
            for ms, source, packets in given
        ]
        blocks = [b"".join(contents[at : at + 100]) for at in range(0, len(contents), 100)]
        paths.append(tmp_path / f"nfcapd.{len(paths)}")
        paths[-1].write_bytes(flow_file(blocks, compression=compression))
    exports = tmp_path / "exports.pcap"
    datagrams = [v5([v5_record("10.0.0.1", counts=(7, 0))], n) for n in range(50)]
    exports.write_bytes(capture_of(map(udp_packet, datagrams), 10**9))
    flows += [((EXPORTED_S + n) * 1000, "10.0.0.1", 7) for n in range(50)]

    program = compile_queries(
        [QueryText(BY_EPOCH, "q")], CompileContext(("stored", "sent"), {}, {})
    ).program
    files = {"stored": paths, "sent": [exports]}
    if is_sorted:
        steps = BackwardSteps({"stored": tuple(map(str, paths))})
        skew_ns = steps.deepest_ns("stored")
        steps.close()
        assert skew_ns is not None
        assert skew_ns > 30 * 10**9
        # With less, records are late; with this none is, which ``answer`` ensures.
        less = replace(variation, skew_ns=skew_ns - 1, heartbeat_every_tick=True)
        _, summary = replayed(program, files, less, tmp_path / "log")
        assert summary.interfaces[0].late > 0
        variation = replace(less, skew_ns=skew_ns)
    (rows,) = answer(program, files, variation, spark).values()
    assert Counter(rows) == Counter(expected(flows))


def expected(flows: list[tuple[int, str, int]]) -> list[tuple[str, ...]]:
    groups: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for ms, source, packets in flows:
        groups.setdefault((ms // 10_000, source), []).append((ms // 1000, packets))
    return [
        (
            *(str(tb), source, str(len(found))),
            str(sum(packets for _, packets in found)),
            *(str(pick(at for at, _ in found)) for pick in (min, max)),
        )
        for (tb, source), found in groups.items()
    ]
