"""A live run whose job stands still until the log is nearly full.

Its epochs have whole groups, no gap. The oracle is tcpdump, which captures the same packets with
the same times, and a plain loop.
"""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import dpkt
import pytest
from tests.capture.sources.af_packet.live_frames import udp_frame
from tests.capture.sources.af_packet.network import DEVICE, send
from tests.live.test_run import live, network
from tests.live.test_shedding import job_of
from tests.support.gscope_command import PATIENCE_S
from tests.support.requirements import needs

from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.sampling.keyed_hash import HashKey, hash_terms
from gscope.queries.run_folder.layout import CAPTURE_STATISTICS_FILE
from gscope.queries.run_folder.sample_seed import moving_seed
from gscope.queries.run_folder.snapshot import read_snapshot

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.live, pytest.mark.slow]

__all__ = ["live", "network"]

FLOWS, FEW = 2000, 100
QUERY = """SELECT tb, srcPort, count(*) AS packets, max(len) AS longest, sample_rate
FROM UDP GROUP BY time AS tb, srcPort"""
BOUNDS = ("--log", "600kB", "--min-rate", "30%", "--failure-timeout", "10min")
EPOCHS_AWAY = 10


def witnessed(pcap: Path) -> dict[int, Counter[int]]:
    """The packets of each source port in each second."""
    found: dict[int, Counter[int]] = defaultdict(Counter)
    with pcap.open("rb") as file:
        for when, frame in dpkt.pcap.Reader(file):
            packet = dpkt.ethernet.Ethernet(frame).data
            if isinstance(packet, dpkt.ip.IP) and isinstance(packet.data, dpkt.udp.UDP):
                found[int(when)][packet.data.sport] += 1
    return found


@needs("tcpdump")
def test_epochs_that_a_job_missed_have_whole_groups_and_no_gap(live: Any, tmp_path: Path) -> None:
    pcap = tmp_path / "witness.pcap"
    witness = subprocess.Popen(
        ["tcpdump", "-i", DEVICE, "-w", str(pcap), "-U", "--time-stamp-precision=nano", "udp"],
        stderr=subprocess.PIPE,
    )
    assert witness.stderr is not None
    assert any(b"listening" in line for line in iter(witness.stderr.readline, b""))
    # An unsampled selection would have rows of every packet, so there is one query only.
    running = live("-e", QUERY, "-i", DEVICE, "--shedding", "auto", *BOUNDS, "--work-dir", tmp_path)
    (run_dir,) = tmp_path.glob("run-*")

    def talk(flows: int = FLOWS) -> None:
        send(udp_frame(number, 1000 + number) for number in range(flows))
        time.sleep(0.1)

    def log() -> dict[str, int]:
        found = read_snapshot(run_dir / CAPTURE_STATISTICS_FILE)
        return {} if found is None else found["log"]

    # Few rows while Spark starts: batches that the job has leased when it stops cannot be thinned.
    running.wait_for_lines(3 * FEW, lambda: talk(FEW))
    job = job_of(running.pid)
    os.kill(job, signal.SIGSTOP)
    try:
        began = time.monotonic()
        while time.monotonic() < began + EPOCHS_AWAY or not log().get("thinned_tuples_total"):
            assert time.monotonic() < began + PATIENCE_S, log()
            talk()
    finally:
        os.kill(job, signal.SIGCONT)
    before = len(running.lines)
    running.wait_for_lines(before + 100, talk)
    seed = moving_seed(run_dir)
    assert seed is not None
    running.end()
    witness.terminate()
    witness.wait(PATIENCE_S)
    witness.stderr.close()
    assert "removed: the log was nearly full; other groups are whole" in running.summary
    assert "shed tuples are missing" not in running.summary
    assert "rows were shed for want of disk space" not in running.summary
    _check(running.lines, witnessed(pcap), HashKey.of_seed(seed), running.summary)


def _check(lines: list[bytes], full: dict[int, Counter[int]], key: HashKey, summary: str) -> None:
    """Each epoch has the groups of the full answer up to one threshold, exactly."""
    answers: dict[int, dict[int, int]] = defaultdict(dict)
    rates: dict[int, set[float]] = defaultdict(set)
    for row in csv.DictReader(line.decode() for line in lines):
        second, port = int(row["tb"]), int(row["srcPort"])
        assert port not in answers[second]
        answers[second][port] = int(row["packets"])
        rates[second].add(float(row["sample_rate"]))
    # The first and the last second may have been captured in part.
    seconds = range(min(answers) + 1, max(answers))
    assert set(seconds) <= set(full)
    for second in seconds:
        assert len(rates[second]) == 1, f"second {second} has no rows, or several rates"
        (rate,) = rates[second]
        expected = {
            port: packets
            for port, packets in full[second].items()
            if (hash_terms((port,), (GsqlType.INT,), key) + 1) / 2**64 <= rate
        }
        assert answers[second] == expected, (second, rate, summary)
    least = min(rate for second in seconds for rate in rates[second])
    assert 0.3 <= least < 1
