"""Queries without a temporal term from the command line.

Over captures one answer, and what check and explain say.
"""

from __future__ import annotations

import json
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.support.gscope_command import run
from tests.support.requirements import CAPTURES, needs_captures

if TYPE_CHECKING:
    from pathlib import Path

NETFLIX = CAPTURES / "ndpi-netflix.pcap"
COUNT = "SELECT count(*) AS packets, sum(len) AS bytes FROM TCP"

pytestmark = pytest.mark.slow


def test_check_and_explain_say_when_it_answers() -> None:
    done = run("check", "-e", COUNT)
    assert done.returncode == 0
    assert "answers once, at the end of a replay" in done.stdout
    assert "answers once" not in run("check", "-e", f"{COUNT} GROUP BY time/60").stdout
    assert "the input is one epoch" in run("explain", "-e", COUNT).stdout


@needs_captures
def test_a_capture_is_counted_as_tshark_counts_it(tmp_path: Path) -> None:
    queries = {
        "all": COUNT,
        "elsewhere": f"{COUNT} WHERE interface = 'other'",
        "never": f"{COUNT} WHERE 1 = 2",
    }
    texts = [f"Query {name}: {text}" for name, text in queries.items()]
    folder = tmp_path / "out"
    done = run(
        *("replay", NETFLIX, "-e", "; ".join(texts), "-o", "ndjson", "-w", folder),
        *("--work-dir", tmp_path / "wd"),
    )
    assert done.returncode == 0, done.stderr
    rows = {path.stem: json.loads(path.read_text()) for path in folder.iterdir()}
    seen = subprocess.run(
        ["tshark", "-r", str(NETFLIX), "-Y", "tcp", "-T", "fields", "-e", "frame.len"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert rows == {
        "all": {"packets": len(seen), "bytes": sum(map(int, seen))},
        "elsewhere": {"packets": 0, "bytes": None},
        "never": {"packets": 0, "bytes": None},
    }


def test_a_capture_without_packets_has_a_count_of_0(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    done = run("replay", empty, "-e", COUNT, "-o", "csv", "--work-dir", tmp_path / "wd")
    assert (done.returncode, done.stdout) == (0, "packets,bytes\n0,\n"), done.stderr


@needs_captures
@pytest.mark.parametrize(
    "grouped", ["SELECT count(*) AS n, sum(len) AS bytes FROM j", "SELECT DISTINCT t, len FROM j"]
)
def test_a_join_without_rows_is_grouped(tmp_path: Path, grouped: str) -> None:
    # No packet has this time to live, so that the join promises the end before it has a bound.
    texts = (
        "Query j: SELECT l.time AS t, r.len AS len FROM TCP l JOIN TCP r ON l.time = r.time"
        f" WHERE l.ttl = 256; {grouped}"
    )
    done = run("replay", NETFLIX, "-e", texts, "-o", "csv", "--work-dir", tmp_path / "wd")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("n,bytes\n0,\n" if "count" in grouped else "t,len\n")


@needs_captures
def test_a_join_without_rows_is_grouped_by_epochs(tmp_path: Path) -> None:
    text = (
        "SELECT tb, count(*) AS n FROM TCP l JOIN TCP r ON l.time = r.time"
        " WHERE l.ttl = 256 GROUP BY l.time/60 AS tb"
    )
    done = run("replay", NETFLIX, "-e", text, "-o", "csv", "--work-dir", tmp_path / "wd")
    assert (done.returncode, done.stdout) == (0, "tb,n\n"), done.stderr


@pytest.mark.parametrize("call", ["first(packets)", "last(packets)", "count_diff(packets)"])
def test_rows_without_a_time_have_no_first_one(call: str) -> None:
    texts = (
        "Query talkers: SELECT srcIP, count(*) AS packets FROM IP GROUP BY srcIP;"
        f" SELECT {call} AS p FROM talkers"
    )
    done = run("check", "-e", texts)
    assert done.returncode == 2
    assert "needs rows that have a time to order them" in done.stderr


@needs_captures
@pytest.mark.parametrize("further", ["", ", avg(x) AS m, first(x) AS f, sum(x) AS s"])
def test_zero_has_no_sign_whatever_computes_it(tmp_path: Path, further: str) -> None:
    # Spark SQL computes a first FLOAT of packets, and with it the other aggregates of the query.
    text = f"SELECT min(x) AS i, max(x) AS a{further} FROM UDP".replace("(x)", "(offset * -1.0)")
    done = run(
        *("replay", NETFLIX, "-o", "csv", "--work-dir", tmp_path / "wd"),
        *("-e", f"{text} WHERE offset = 0"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith("0,0")
