"""A live run whose job is too slow sheds, reports exactly how much, and answers the rest."""

from __future__ import annotations

import csv
import os
import re
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.sources.af_packet.network import DEVICE, send
from tests.live.test_run import FLOWS, live, network, packets_in, udp
from tests.support.gscope_command import PATIENCE_S, descendants

from gscope.queries.run_folder.layout import CAPTURE_STATISTICS_FILE
from gscope.queries.run_folder.snapshot import read_snapshot

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.live, pytest.mark.slow]

__all__ = ["live", "network"]


def job_of(pid: int) -> int:
    return next(p for p, line in descendants(pid).items() if "engine.job" in line)


def has_shed(work_dir: Path) -> bool:
    """Return whether the log of the run in ``work_dir`` has shed a batch."""
    (run_dir,) = work_dir.glob("run-*")
    found = read_snapshot(run_dir / CAPTURE_STATISTICS_FILE)
    return found is not None and found["log"]["shed_batches_total"] > 0


def test_what_a_job_that_stands_still_misses_is_counted_to_the_packet(
    live: Any, tmp_path: Path
) -> None:
    """Epochs of a second: the log holds two of those that the job misses.

    The job stands still until the log has shed, and the run ends with the last packet, however
    long all that takes.
    """
    every_second = FLOWS.replace("time/2", "time")
    counts = packets_in(30)
    bounds = ("--log", "6kB", "--strict", "-c", str(sum(counts)), "--failure-timeout", "10min")
    running = live("-e", every_second, "-i", DEVICE, *bounds, "--work-dir", tmp_path)
    sent = 0

    def send_next(pause_s: float) -> None:
        nonlocal sent
        sent += send(udp(sent + n) for n in range(counts.pop()))
        time.sleep(pause_s)

    while len(counts) > 275:
        send_next(0.1)
    job = job_of(running.pid)
    os.kill(job, signal.SIGSTOP)
    until = time.monotonic() + PATIENCE_S
    while not has_shed(tmp_path):
        assert time.monotonic() < until, "the log has shed nothing"
        # Some packets are left for when the job goes on.
        if len(counts) > 10:
            send_next(0.1)
        else:
            time.sleep(0.1)
    os.kill(job, signal.SIGCONT)
    while counts:
        send_next(0.01)
    assert running.wait() == 3, running.summary
    assert f"{sent:,} packets received = {sent:,} accepted;" in running.summary
    found = re.search(r"\(([\d,]+) packets\)", running.summary)
    assert found is not None, running.summary
    shed = int(found[1].replace(",", ""))
    rows = csv.DictReader(line.decode() for line in running.lines)
    assert sum(int(row["packets"]) for row in rows) + shed == sent
    assert "the log was full; raise its limit with --log" in running.summary
    assert "may lack rows or packets: rows were shed for want of disk space" in running.summary
