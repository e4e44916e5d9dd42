"""Twenty queries that no cache has, and the same queries seen before: time to the first row.

    python -m benchmarks.new_queries [--packets 20000] [--runs 3] [--queries 20]

Queries are of the library, or variations of them as people type them. A run is *new* if the
machine code of its kernel has just been removed; gscope's own kernels and Java's class-data archive
are there in all runs. New and seen runs alternate. The time is that from the start of the process
to the first row on its standard output. ``--phases`` shows the phases of a new run of the first
query.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.first_row import build_archive, first_row_s, usable_cache
from benchmarks.installed import compile_modules
from benchmarks.trace import OUT, trace
from gscope.capture.lfta.native_kernel import DECODER_SOURCE

PACKETS, RUNS = 20_000, 3

_LIBRARY = (
    "flow",
    "top_talkers",
    "top_receivers",
    "conversations",
    "traffic_matrix",
    "protocol_mix",
    "link_load",
    "packet_sizes",
    "load_percentiles",
    "heavy_hitters",
)
_TYPED = {
    "hosts by second": "SELECT second(timestamp) AS t, srcIP, count(*), sum(len) FROM IP "
    "GROUP BY second(timestamp) AS t, srcIP",
    "ports of large packets": "SELECT time/10 AS tb, destPort, count(*), max(len) FROM TCP "
    "WHERE len > 60 GROUP BY time/10 AS tb, destPort",
    "flags": "SELECT time/30 AS tb, flags, count(*), avg(len) FROM TCP"
    " GROUP BY time/30 AS tb, flags",
    "one network": "SELECT timestamp, srcIP, destIP, len FROM IP WHERE srcIP & 255 < 8",
    "ten packets": "SELECT timestamp, srcIP, srcPort, destIP, destPort, len FROM TCP LIMIT 10",
    "distinct peers": "SELECT time/60 AS tb, srcIP, count(DISTINCT destIP) FROM IP "
    "GROUP BY time/60 AS tb, srcIP",
    "spread of lengths": "SELECT time/60 AS tb, protocol, stddev(len), min(len), max(len) FROM IP "
    "GROUP BY time/60 AS tb, protocol",
    "networks": "SELECT time/60 AS tb, srcIP & 0xFFFFFF00 AS net, sum(len) FROM IPv4 "
    "GROUP BY time/60 AS tb, srcIP & 0xFFFFFF00 AS net",
    "busiest ports": "SELECT destPort, count(*) AS packets FROM TCP GROUP BY destPort "
    "ORDER BY packets DESC LIMIT 10",
    "median length": "SELECT time/60 AS tb, median(len) FROM IP GROUP BY time/60 AS tb",
}
QUERIES = {name: ("-q", name) for name in _LIBRARY} | {
    name: ("-e", text) for name, text in _TYPED.items()
}
"""Options that ask for each query."""


def forget_kernels(cache: Path) -> None:
    """Remove the kernels of queries from a cache, but not the decoder that they link."""
    sources = [path for path in cache.rglob("lfta/lfta_*.py") if path.read_text() != DECODER_SOURCE]
    for source in sources:
        for file in source.parent.glob(f"{source.stem}.*"):
            file.unlink()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--packets", type=int, default=PACKETS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--queries", type=int, default=len(QUERIES))
    parser.add_argument("--phases", action="store_true")
    arguments = parser.parse_args()
    compile_modules()
    gscope = str(Path(sys.executable).parent / "gscope")
    capture = str(trace(arguments.packets))
    figures: list[tuple[str, str, int, float]] = []
    ratios: list[float] = []
    print("| query | new s | seen s | ratio |\n| --- | ---: | ---: | ---: |", flush=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        environment = usable_cache(folder)
        chosen = list(QUERIES.items())[: arguments.queries]
        for number, (name, options) in enumerate(chosen):
            command = [gscope, "replay", capture, *options, "-o", "csv", "--quiet"]
            if number == 0:
                build_archive(command, environment)
            for run in range(1, arguments.runs + 1):
                forget_kernels(Path(folder))
                figures.append((name, "new", run, first_row_s(command, environment)[0]))
                figures.append((name, "seen", run, first_row_s(command, environment)[0]))
            new, seen = (
                statistics.median(row[3] for row in figures if row[:2] == (name, start))
                for start in ("new", "seen")
            )
            ratios.append(new / seen)
            print(f"| {name} | {new:.2f} | {seen:.2f} | {new / seen:.2f} |", flush=True)
        if arguments.phases:
            forget_kernels(Path(folder))
            first = [gscope, "replay", capture, *chosen[0][1], "-o", "csv", "--timings"]
            subprocess.run(first, env=environment, stdout=subprocess.DEVNULL, check=True)
    print(f"\nmedian ratio {statistics.median(ratios):.2f}, greatest {max(ratios):.2f}")
    with (OUT / "new_queries.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["query", "start", "run", "first_row_s"])
        writer.writerows(figures)


if __name__ == "__main__":
    _main()
