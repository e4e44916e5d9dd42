"""A whole capture to an answer: the flow query of gscope against common flow tools.

    python -m benchmarks.replay [--packets N] [--runs 5] [--only gscope softflowd]

``nfpcapd`` and ``nfdump`` write all flows as CSV, with timeouts of 10 s as the closest equivalent
of ``time/10`` (their flows do not end at the epochs' borders). ``softflowd`` only tracks flows and
discards them: first as installed, with IPv4 and 8,192 flows at most, then with IPv6 and room for
all flows.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from benchmarks.measure import Contestant
from benchmarks.replay_race import race_over_capture
from benchmarks.trace import OUT

FLOW_QUERY = (
    "SELECT tb, ipversion, protocol, srcIP, destIP, srcPort, destPort, "
    "count(*) as cnt, sum(len) as bytes FROM IP GROUP BY time/10 as tb, ipversion, protocol, "
    "srcIP, destIP, srcPort, destPort"
)


def contestants(capture: Path) -> list[Contestant]:
    """Return the contestants whose program is installed."""
    gscope = str(Path(sys.executable).parent / "gscope")
    flow_dir = OUT / "nfcapd"
    softflowd = (
        "softflowd",
        "-d",
        "-r",
        str(capture),
        "-c",
        "none",
        "-p",
        str(OUT / "softflowd.pid"),
    )
    nfpcapd = ("nfpcapd", "-e", "10,10", "-r", str(capture), "-w", str(flow_dir))
    everyone = [
        Contestant(
            "gscope",
            ((gscope, "replay", str(capture), "-e", FLOW_QUERY, "-o", "csv"),),
            OUT / "gscope.csv",
        ),
        Contestant(
            "nfpcapd + nfdump",
            (nfpcapd, ("nfdump", "-R", str(flow_dir), "-o", "csv")),
            OUT / "nfdump.csv",
            lambda: _empty(flow_dir),
        ),
        Contestant("softflowd", (softflowd,)),
        Contestant(
            "softflowd, all flows",
            ((*softflowd, "-6", "-m", "1000000", "-t", "maxlife=10", "-t", "expint=1"),),
        ),
    ]
    return [one for one in everyone if all(shutil.which(part[0]) for part in one.commands)]


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


if __name__ == "__main__":
    race_over_capture(__doc__, contestants, "replay")
