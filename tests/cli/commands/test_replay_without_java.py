"""Replays whose steps are small and plain need no Java, and answer what Spark answers."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.support.requirements import CAPTURES, needs_captures

if TYPE_CHECKING:
    from pathlib import Path

CAPTURE = CAPTURES / "ndpi-netflix.pcap"
PLAIN = (
    "SELECT tb, srcIP, destIP, count(*) AS n, sum(len) AS bytes FROM IP"
    " GROUP BY time/5 AS tb, srcIP, destIP"
)
IN_SQL = "SELECT tb, last(len / 2.0) AS size FROM IP GROUP BY time/5 AS tb"

pytestmark = [pytest.mark.slow, pytest.mark.spark, needs_captures]


def replay(*options: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gscope", "replay", str(CAPTURE), "-o", "csv", "--timings"]
    return subprocess.run(
        [*command, "--work-dir", str(folder), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_plain_query_starts_no_java_and_gives_the_rows_of_spark(tmp_path: Path) -> None:
    here = replay("-e", PLAIN, folder=tmp_path)
    assert here.returncode == 0, here.stderr
    assert "Java launched" not in here.stderr
    in_spark = replay("-e", PLAIN, "--master", "local[2]", folder=tmp_path)
    assert "Spark ready" in in_spark.stderr
    assert here.stdout == in_spark.stdout
    assert here.stdout.count("\n") > 10


def test_a_query_that_needs_sql_starts_java(tmp_path: Path) -> None:
    done = replay("-e", IN_SQL, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Java launched" in done.stderr
    assert "Spark ready" in done.stderr
    assert done.stdout.count("\n") > 1
