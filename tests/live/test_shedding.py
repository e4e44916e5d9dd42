"""A live run whose job is too slow sheds, tells exactly how much, and answers the rest."""

from __future__ import annotations

import csv
import os
import re
import signal
from typing import Any

import pytest
from tests.capture.sources.af_packet.network import DEVICE
from tests.gscope_command import descendants
from tests.live.test_run import FLOWS, live, network, send_for

pytestmark = [pytest.mark.live, pytest.mark.slow]

__all__ = ["live", "network"]


def job_of(pid: int) -> int:
    return next(p for p, line in descendants(pid).items() if "engine.job" in line)


def test_what_a_job_that_stands_still_misses_is_counted_to_the_packet(live: Any) -> None:
    # epochs of a second: the log holds two of the four that the job misses
    every_second = FLOWS.replace("time/2", "time")
    running = live("-e", every_second, "-i", DEVICE, "--log", "6kB", "--strict", "--duration", "9s")
    sent = send_for(2.5)
    job = job_of(running.pid)
    os.kill(job, signal.SIGSTOP)
    sent += send_for(4)
    os.kill(job, signal.SIGCONT)
    sent += send_for(1)
    assert running.wait() == 3
    assert f"{sent:,} packets received = {sent:,} accepted;" in running.summary
    found = re.search(r"which stood for ([\d,]+) packets", running.summary)
    assert found is not None, running.summary
    shed = int(found[1].replace(",", ""))
    rows = csv.DictReader(line.decode() for line in running.lines)
    assert sum(int(row["packets"]) for row in rows) + shed == sent
    assert "the log was full; give it more with --log" in running.summary
