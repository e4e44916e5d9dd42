"""Runs in the background that are stopped, killed and resumed.

They are on packets in a network of the test's own.
"""

from __future__ import annotations

import csv
import os
import signal
from functools import partial
from typing import TYPE_CHECKING

import duckdb
import pyarrow.parquet as pq
import pytest
from tests.capture.sources.af_packet.network import DEVICE, own_network, send
from tests.live.test_run import udp
from tests.support.gscope_command import is_alive, run, wait_for

from gscope.capture.log.log import read_log
from gscope.cli.rundir.records import find_runs
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path


NUMBERED = "SELECT time, id FROM UDP"

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.fixture(autouse=True)
def network() -> Iterator[None]:
    """Devices of our own; without the right to make them the test is skipped."""
    with own_network():
        yield


def detached(work: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    more = ("-d", "--run", "numbers", "-i", DEVICE, "--work-dir", work)
    return run("run", "-e", NUMBERED, *more, *arguments)


def test_a_run_in_the_background_is_stopped_and_its_files_grow(work: Path, tmp_path: Path) -> None:
    begun = detached(work, "-w", tmp_path / "out")
    assert begun.returncode == 0, begun.stderr
    assert "gscope: numbers is running as process" in begun.stderr
    again = detached(work, "-w", tmp_path / "other")
    assert again.returncode == 2
    assert "numbers is active" in again.stderr
    send(udp(n) for n in range(40))
    file = tmp_path / "out" / "query.csv"
    wait_for(lambda: file.read_text().count("\n") == 41, "the rows in the file while it runs")
    done = run("stop", "--work-dir", work)
    assert (done.returncode, done.stderr) == (0, "")
    assert "numbers has ended\ngscope: 40 packets received = 40 accepted; 40 rows" in done.stdout
    assert list(work.iterdir()) == []
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["query.csv"]


def test_an_error_of_a_run_in_the_background_is_reported_before_the_command_ends(
    work: Path,
) -> None:
    done = run("run", "-d", "-e", NUMBERED, "-i", "nix0", "-w", work.parent, "--work-dir", work)
    assert (done.returncode, done.stdout) == (1, "")
    assert "unknown network interface 'nix0'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(work.iterdir()) == []


@pytest.mark.parametrize("kind", ["csv", "parquet", "parquet --partition-by minute"])
def test_a_killed_run_is_resumed_and_answers_each_logged_row_once(
    work: Path, tmp_path: Path, kind: str
) -> None:
    out = tmp_path / "out"
    begun = detached(work, "-w", out, "-o", *kind.split())
    assert begun.returncode == 0, begun.stderr
    sent = send(udp(n) for n in range(30))
    (record,) = find_runs(work)
    wait_for(partial(holds, record.path / "log", sent), "the rows in the log")
    kill(work)
    others = ("-e", "SELECT time FROM UDP", "-i", DEVICE, "-w", out, "--run", "numbers")
    refused = run("run", *others, "--work-dir", work)
    assert refused.returncode == 2
    assert "numbers: it was started with other queries" in refused.stderr
    begun = detached(work, "-w", out, "-o", *kind.split())
    assert begun.returncode == 0, begun.stderr
    sent += send(udp(n) for n in range(sent, sent + 30))
    done = run("stop", "--work-dir", work)
    assert done.returncode == 0, done.stderr
    assert list(work.iterdir()) == []
    assert sorted(numbers(out, kind)) == list(range(sent))


def holds(log: Path, rows: int) -> bool:
    """Whether this number of rows was ever logged."""
    return sum(each.rows for each in read_log(log) if isinstance(each, Batch)) >= rows


def kill(work: Path) -> None:
    """End the supervisor of the only run at once, and wait until the run can be resumed."""
    (record,) = find_runs(work)
    daemon = record.processes["capture"].pid
    assert daemon is not None
    os.kill(record.pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(daemon), "the end of the daemon")
    wait_for(
        lambda: [each.standing for each in find_runs(work)] == ["stale"], "its lock to be free"
    )


def numbers(folder: Path, kind: str) -> list[int]:
    """The column ``id`` of all answers there."""
    if "--partition-by" in kind:
        # Rows are in the partitions of their times, which DuckDB reads from the paths.
        found = duckdb.connect().sql(
            "SELECT id, time // 60 * 60 = epoch(date) + hour * 3600 + minute * 60 FROM"
            f" read_parquet('{folder}/query/**/*.parquet', hive_partitioning = true)"
        )
        assert all(is_there for _, is_there in found.fetchall())
        return [number for number, _ in found.fetchall()]
    if kind == "parquet":
        parts = [pq.read_table(part) for part in folder.glob("query-*.parquet")]
        return [number for part in parts for number in part["id"].to_pylist()]
    with (folder / "query.csv").open(newline="") as file:
        return [int(row["id"]) for row in csv.DictReader(file)]
