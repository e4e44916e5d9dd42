"""A user who is a number only, as OpenShift gives containers.

No entry in the user database, with a home or without.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.capture.replay.test_replay_capture import write_pcap
from tests.live.test_run import udp
from tests.support.gscope_command import command
from tests.support.requirements import needs_root

UID = 1_000_660_000
ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, needs_root]


def test_queries_are_answered_without_a_home_and_with_one_that_is_closed(
    open_folder: Path,
) -> None:
    own = open_folder / "own"
    own.mkdir()
    (own / "tmp").mkdir()
    write_pcap(own / "main.pcap", [(10**9 * n, udp(n)) for n in range(3)])
    for path in (own, own / "tmp"):
        os.chown(path, UID, 0)
    environment = {
        key: os.environ[key] for key in ("PATH", "LANG", "JAVA_HOME") if key in os.environ
    }
    environment |= {
        "TMPDIR": str(own / "tmp"),
        "GSCOPE_NO_ARCHIVE": "1",
        "PYTHONPATH": str(ROOT),
        # What fails shows where.
        "GSCOPE_DEBUG": "1",
    }
    cache = own / "tmp" / f"gscope-{UID}" / "cache"
    assert answer(own, environment) == "tb,n\n0,3\n"
    kernels = set(cache.rglob("*.o"))
    assert kernels, "kernels are kept"
    # OpenShift sets HOME to the root folder, which the user cannot write to.
    assert answer(own, environment | {"HOME": "/"}) == "tb,n\n0,3\n"
    assert set(cache.rglob("*.o")) == kernels, "kernels are found again"


def answer(own: Path, environment: dict[str, str]) -> str:
    """Return the CSV file of a replay by the user in its folder ``own``; the file is removed."""
    query = "SELECT tb, count(*) AS n FROM UDP GROUP BY time/60 AS tb"
    arguments = command("replay", "main.pcap", "-e", query, "-o", "csv", "-w", "answers")
    done = subprocess.run(
        [sys.executable, "-m", "tests.safety.as_user", str(UID), "0", *arguments],
        cwd=own,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    path = own / "answers" / "query.csv"
    text = path.read_text()
    path.unlink()
    return text
