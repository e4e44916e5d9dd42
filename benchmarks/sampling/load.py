"""CPU of a whole replay, daemon and job together, at ten rates; and the floor below which none gets.

    python -m benchmarks.sampling.load [--packets 2000000] [--runs 3]

Two queries: ``flows`` groups by address and port, and is kept by groups; ``totals`` counts packets
a second, and is kept by packets. ``floor`` is a query of the same form whose WHERE rejects every
packet: reading and decoding, which are not sampled. ``start`` is the same query over 1,000 packets:
Python, Java and Spark, which is subtracted. Load is the rest of the CPU time as a share of that
without sampling. Writes ``benchmarks/sampling/load.csv``.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Contestant, race
from benchmarks.replay import FLOW_QUERY
from benchmarks.trace import trace, warm

if TYPE_CHECKING:
    from collections.abc import Sequence

CSV = Path(__file__).with_name("load.csv")
RATES = ("1", "0.5", "0.2", "0.18", "0.14", "0.1", "0.08", "0.05", "0.03", "0.02")
QUERIES = {
    "flows": FLOW_QUERY,
    "totals": "SELECT time, count(*) as cnt, sum(len) as bytes FROM IP GROUP BY time",
}
FEW_PACKETS = 1000


def contestant(name: str, capture: Path, query: str, *more: str) -> Contestant:
    """Return a replay of ``capture`` to CSV."""
    gscope = str(Path(sys.executable).parent / "gscope")
    command = (gscope, "replay", f"main={capture}", "-e", query, "-o", "csv", "--quiet", *more)
    return Contestant(name, (command,))


def contestants(query: str, capture: Path, few: Path) -> list[Contestant]:
    """Return all contestants of one query."""
    rejecting = query.replace("FROM IP", "FROM IP WHERE len < 0")
    return [
        contestant("start", few, query),
        contestant("floor", capture, rejecting),
        contestant("off", capture, query),
        *(contestant(rate, capture, query, "--sample-rate", rate) for rate in RATES),
    ]


def loads(query: str, capture: Path, few: Path, runs: int) -> list[tuple[str, float, float]]:
    """Return for each contestant its CPU seconds, and its load as a share of that without samples."""
    costs = race(contestants(query, capture, few), runs)
    cpu = {name: statistics.median(c.cpu_s for c in each) for name, each in costs.items()}
    whole = cpu["off"] - cpu["start"]
    return [(name, taken, (taken - cpu["start"]) / whole) for name, taken in cpu.items()]


def write(rows: Sequence[tuple[str, str, float, float]]) -> None:
    """Write and print the figures."""
    with CSV.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("query", "rate", "cpu_s", "load"))
        for query, name, cpu_s, load in rows:
            writer.writerow((query, name, f"{cpu_s:.2f}", f"{load:.3f}"))
            print(f"{query:8}{name:>8}{cpu_s:>8.2f} s{load:>8.3f}")


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--packets", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    capture, few = trace(arguments.packets), trace(FEW_PACKETS)
    warm(capture)
    write(
        [
            (name, *row)
            for name, query in QUERIES.items()
            for row in loads(query, capture, few, arguments.runs)
        ]
    )


if __name__ == "__main__":
    _main()
