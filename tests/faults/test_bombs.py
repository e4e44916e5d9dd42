"""Memory of every process of a replay, whatever a small file unpacks to."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from tests.faults.bombs import PACKET, write_bomb
from tests.faults.process_memory import watch

if TYPE_CHECKING:
    from pathlib import Path

LIMIT = 1 << 30
JAVA_OVERHEAD = 300 << 20
"""What Java takes beyond its heap, by docs/operations.md."""
PAYLOADS = "SELECT time, srcIP, data FROM IP"

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("bomb", "kind", "rows"),
    [
        ("one_huge_record", "gzip", 0),
        ("large_records", "zstd", 2048),
        ("tiny_records", "lz4", 6_000_000),
        ("huge_options", "gzip", 20),
        ("huge_block", "zstd", 1),
        ("many_interfaces", "lz4", 0),
    ],
)
def test_no_process_takes_more_than_a_gigabyte(
    bomb: str, kind: str, rows: int, tmp_path: Path
) -> None:
    path = write_bomb(bomb, kind, tmp_path)
    assert path.stat().st_size < 32 << 20
    command = [sys.executable, "-m", "gscope", "replay", str(path), "-e", PAYLOADS, "-o", "csv"]
    done = watch(
        [*command, "--work-dir", str(tmp_path / "work")], tmp_path, limit=LIMIT, timeout_s=300
    )
    assert not done.was_stopped, done.peaks
    assert b"Traceback" not in done.stderr
    assert done.peak <= LIMIT
    assert done.stdout.count(b"\n") == rows + 1


def test_spark_groups_by_large_values_within_a_gigabyte(tmp_path: Path) -> None:
    """64 MB of group keys, and as much of other values, in the smallest heap."""
    path = write_bomb("distinct_records", "zstd", tmp_path)
    assert path.stat().st_size < 1 << 20
    query = "SELECT data, count(*) AS c, max(data) AS m FROM IP GROUP BY time/60 AS tb, data"
    answers = tmp_path / "answers"
    command = [sys.executable, "-m", "gscope", "replay", str(path), "-e", query]
    options = ["-o", "parquet", "-w", str(answers), "--spark-memory", "512M"]
    work = ["--work-dir", str(tmp_path / "work")]
    done = watch([*command, *options, *work], tmp_path, limit=LIMIT, timeout_s=120)
    assert not done.was_stopped, done.peaks
    assert done.returncode == 0, done.stderr.decode()
    java = [peak for (_, name), peak in done.peaks.items() if name == "java"]
    assert java
    assert max(java) <= (512 << 20) + JAVA_OVERHEAD
    (file,) = answers.glob("*.parquet")
    rows = pq.read_table(file)
    zeros = bytes(262_144 - len(PACKET) - 4)
    expected = [zeros + number.to_bytes(4) for number in range(256)]
    assert rows["data"].to_pylist() == rows["m"].to_pylist() == expected
    assert rows["c"].to_pylist() == [1] * 256


def test_a_signal_is_heeded_while_large_values_become_text(tmp_path: Path) -> None:
    path = write_bomb("large_records", "zstd", tmp_path)
    command = [sys.executable, "-m", "gscope", "replay", str(path), "-e", PAYLOADS, "-o", "csv"]
    out = tmp_path / "out"
    with out.open("wb") as file:
        process = subprocess.Popen(
            [*command, "--work-dir", str(tmp_path / "work")], stdout=file, stderr=subprocess.PIPE
        )
        assert process.stderr is not None
        deadline = time.monotonic() + 120
        # The heading alone is shorter: rows are being written.
        while out.stat().st_size < 1000 and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert process.poll() is None, process.stderr.read()
        # The first ends the run in order, which writes what was read; another ends it at once.
        deadline = time.monotonic() + 60
        while process.poll() is None:
            assert time.monotonic() < deadline
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
        assert process.returncode != 0
        assert b"Traceback" not in process.stderr.read()
        process.stderr.close()
