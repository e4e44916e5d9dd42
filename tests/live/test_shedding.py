"""A live run whose job is too slow sheds, reports exactly how much, and answers the rest."""

from __future__ import annotations

import csv
import os
import re
import signal
from typing import Any

import pytest
from tests.capture.sources.af_packet.network import DEVICE
from tests.gscope_command import descendants
from tests.live.test_run import FLOWS, live, network, packets_in, send_for

pytestmark = [pytest.mark.live, pytest.mark.slow]

__all__ = ["live", "network"]


def job_of(pid: int) -> int:
    return next(p for p, line in descendants(pid).items() if "engine.job" in line)


def test_what_a_job_that_stands_still_misses_is_counted_to_the_packet(live: Any) -> None:
    """Epochs of a second: the log holds two of the four that the job misses.

    The run ends with the last packet, however long all that takes.
    """
    every_second = FLOWS.replace("time/2", "time")
    phases = (2.5, 4, 1)
    total = sum(sum(packets_in(phase)) for phase in phases)
    bounds = ("--log", "6kB", "--strict", "-c", str(total), "--failure-timeout", "10min")
    running = live("-e", every_second, "-i", DEVICE, *bounds)
    sent = send_for(phases[0])
    job = job_of(running.pid)
    os.kill(job, signal.SIGSTOP)
    sent += send_for(phases[1])
    os.kill(job, signal.SIGCONT)
    sent += send_for(phases[2])
    assert sent == total
    assert running.wait() == 3, running.summary
    assert f"{sent:,} packets received = {sent:,} accepted;" in running.summary
    found = re.search(r"\(([\d,]+) packets\)", running.summary)
    assert found is not None, running.summary
    shed = int(found[1].replace(",", ""))
    rows = csv.DictReader(line.decode() for line in running.lines)
    assert sum(int(row["packets"]) for row in rows) + shed == sent
    assert "the log was full; raise its limit with --log" in running.summary
