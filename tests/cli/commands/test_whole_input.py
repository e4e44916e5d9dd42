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
