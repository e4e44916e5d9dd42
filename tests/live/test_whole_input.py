"""A live run that ends is a finite input.

A query without a temporal term is answered when it has ended.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.af_packet.network import DEVICE, own_network, run_ip, send
from tests.live.test_run import Live, udp
from tests.support.gscope_command import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BY_PORT = "SELECT srcPort, count(*) AS packets FROM UDP GROUP BY srcPort"

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.fixture(autouse=True)
def network() -> Iterator[None]:
    """Devices of our own; without the right to make them the test is skipped."""
    with own_network():
        run_ip("link", "set", "lo", "up")  # Spark talks to its Java on it
        yield


def test_a_run_without_bound_is_refused_with_both_remedies(tmp_path: Path) -> None:
    done = run("run", "-e", BY_PORT, "-i", DEVICE, "--work-dir", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no group-by term is temporal" in done.stderr
    assert "add minute(time) to GROUP BY" in done.stderr
    assert "--duration or -c" in done.stderr


def test_a_run_of_a_number_of_packets_answers_at_its_end(tmp_path: Path) -> None:
    running = Live(
        *("-e", BY_PORT, "-i", DEVICE, "-f", "udp port 53", "-c", "30", "-o", "csv"),
        *("--work-dir", tmp_path),
    )
    try:
        running.wait_for_lines(1)
        send(udp(number % 3) for number in range(30))
        assert running.wait() == 0
    finally:
        running.kill()
    rows = list(csv.DictReader(io.StringIO(b"".join(running.lines).decode())))
    counts = {int(row["srcPort"]): int(row["packets"]) for row in rows}
    assert counts == {1000: 10, 1001: 10, 1002: 10}
