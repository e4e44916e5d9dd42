"""A whole capture to an answer: the flow query of gscope against common flow tools.

    python -m benchmarks.replay [--packets N] [--runs 5] [--only gscope softflowd]

``nfpcapd`` and ``nfdump`` write all flows as CSV, with timeouts of 10 s as the closest equivalent
of ``time/10`` (their flows do not end at the epochs' borders). ``softflowd`` only tracks flows and
discards them: first as installed, with IPv4 and 8,192 flows at most, then with IPv6 and room for
all flows.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from benchmarks.installed import compile_modules
from benchmarks.measure import RUNS, Contestant, chosen, race, run_once, table, write_csv
from benchmarks.trace import OUT, PACKETS, trace, warm

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


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--packets", type=int, default=PACKETS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run only these contestants")
    arguments = parser.parse_args()
    capture = trace(arguments.packets)
    warm(capture)
    compile_modules()
    field = chosen(contestants(capture), arguments.only)
    for contestant in field:
        # Compilation and caching on first use are not part of the race.
        run_once(contestant)
    costs = race(field, arguments.runs)
    print(table(costs, arguments.packets))
    write_csv(costs, OUT / "replay.csv")


if __name__ == "__main__":
    _main()
