"""A live run whose job comes late: what waited was merged meanwhile, and every row is answered."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.af_packet.network import DEVICE, run_ip
from tests.live.test_run import PACKETS, Live, network, send_for
from tests.support.gscope_command import descendants, status, wait_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.live, pytest.mark.slow]

__all__ = ["network"]


def merged_batches(work: Path) -> int:
    log = (status(work).get("capture") or {}).get("log", {})
    return int(log.get("merged_batches_total", 0))


def test_rows_that_were_merged_while_no_job_read_are_answered_once(tmp_path: Path) -> None:
    run_ip("link", "add", "quiet_out", "type", "veth", "peer", "name", "quiet_in")
    run_ip("link", "set", "quiet_out", "up")
    run_ip("link", "set", "quiet_in", "up")
    interfaces = ("-i", f"one={DEVICE}", "-i", "other=quiet_in")
    often = ("--heartbeat-interval", "100ms", "--failure-timeout", "60s")
    # Rows of two links are merged by the job: no other process reads the streams.
    running = Live("-e", PACKETS, *interfaces, *often, "-o", "csv", "--work-dir", tmp_path)
    try:
        job: int = wait_for(
            lambda: next((p for p, c in descendants(running.pid).items() if "engine.job" in c), 0),
            "the job was started",
        )
        os.kill(job, signal.SIGSTOP)
        running.wait_for_lines(1)
        sent = send_for(4)
        assert wait_for(lambda: merged_batches(tmp_path), "that batches are merged")
        os.kill(job, signal.SIGCONT)
        running.wait_for_lines(1 + sent)
        running.end()
    finally:
        running.kill()
    assert len(running.lines) == 1 + sent
    assert f"{sent:,} packets received = {sent:,} accepted;" in running.summary
