"""Cost of windows by their overlap, beside DuckDB's RANGE frames and Spark's window().

    python -m benchmarks.windows.overlap [--packets 10000000] [--overlaps 1 10 100] [--runs 3]

Packets are counted by pair of addresses over windows of ten seconds; an overlap of 100 is a slide
of a tenth of a second. Each window reports the ten pairs that sent most bytes, so that writing rows
costs the same at every overlap.

- gscope: a whole replay, from the capture to CSV.
- DuckDB, Spark: the same windows over a Parquet file with three columns, time in nanoseconds, both
  addresses as numbers, and length; reading a capture is not charged. DuckDB sums the packets of
  each pair and slide first, then adds up with a RANGE frame: what a user of SQL writes who knows
  about panes. A frame has a row only where a pair sent, so its rows are fewer than those of
  windows. Spark expands every row into its windows, as ``window()`` does.

The answers of gscope and Spark are compared row by row.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import (
    RUNS,
    CommandFailedError,
    Contestant,
    Cost,
    race,
    run_once,
    table,
    write_csv,
)
from benchmarks.trace import OUT, PACKETS, trace, warm

if TYPE_CHECKING:
    from collections.abc import Sequence

RANGE_S = 10
OVERLAPS = (1, 10, 100)


def contestants(capture: Path, columns: Path, overlap: int) -> list[Contestant]:
    """Return the contestants at an overlap."""
    slide_ms = RANGE_S * 1000 // overlap
    query = (
        "SELECT window_end, srcIP, destIP, count(*) AS packets, sum(len) AS bytes "
        f"FROM IPV4 [RANGE '{RANGE_S} sec' SLIDE '{slide_ms} ms'] "
        "GROUP BY srcIP, destIP ORDER BY bytes DESC LIMIT 10"
    )
    gscope = str(Path(sys.executable).parent / "gscope")
    replay = (gscope, "replay", str(capture), "-e", query, "-o", "csv")
    found = [
        Contestant(f"gscope, r/s = {overlap}", (replay,), OUT / f"overlap-gscope-{overlap}.csv")
    ]
    for peer in ("duckdb", "spark"):
        command = (sys.executable, "-m", f"benchmarks.windows.{peer}_peer")
        command += (str(columns), str(RANGE_S * 1000), str(slide_ms))
        output = OUT / f"overlap-{peer}-{overlap}.csv"
        found.append(Contestant(f"{peer}, r/s = {overlap}", (command,), output))
    return found


def columns_of(capture: Path) -> Path:
    """Return the columns of the packets of ``capture`` as Parquet; make the file if needed."""
    path = capture.with_suffix(".parquet")
    if not path.exists():
        # In a process of its own: its memory would count towards the contestants' peak.
        code = "benchmarks.windows.packet_columns"
        subprocess.run([sys.executable, "-m", code, str(capture), str(path)], check=True)
    return path


def same_rows(overlap: int) -> bool:
    """Return whether gscope and Spark gave the same rows, which are in order."""
    answers = []
    for peer in ("gscope", "spark"):
        with (OUT / f"overlap-{peer}-{overlap}.csv").open(newline="") as file:
            rows = csv.reader(file)
            next(rows)
            # The order of equal sums is gscope's own, so sums are compared and pairs are not.
            answers.append([(row[0][:23], row[4]) for row in rows])
    return answers[0] == answers[1]


def measured(contestants: Sequence[Contestant], runs: int) -> dict[str, list[Cost]]:
    """Run the contestants in turn; a contestant that fails is reported and left out.

    gscope's kernels are compiled before. Peers have nothing to prepare, and Spark takes long.
    """
    costs: dict[str, list[Cost]] = {each.name: [] for each in contestants}
    for contestant in contestants:
        if contestant.name.startswith("gscope"):
            run_once(contestant)
    for _ in range(runs):
        for contestant in contestants:
            if contestant.name not in costs:
                continue
            try:
                costs[contestant.name] += race([contestant], 1)[contestant.name]
            except CommandFailedError as error:
                del costs[contestant.name]
                print(f"{contestant.name} failed: {error}", file=sys.stderr)
    return costs


def _main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--packets", type=int, default=PACKETS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--overlaps", type=int, nargs="+", default=list(OVERLAPS))
    parser.add_argument("--only", nargs="+", choices=("gscope", "duckdb", "spark"))
    arguments = parser.parse_args()
    capture = trace(arguments.packets)
    columns = columns_of(capture)
    warm(capture)
    warm(columns)
    chosen = [
        contestant
        for overlap in arguments.overlaps
        for contestant in contestants(capture, columns, overlap)
        if not arguments.only or contestant.name.partition(",")[0] in arguments.only
    ]
    costs = measured(chosen, arguments.runs)
    print(table(costs, arguments.packets))
    write_csv(costs, OUT / "windows_overlap.csv")
    for overlap in arguments.overlaps:
        if {f"gscope, r/s = {overlap}", f"spark, r/s = {overlap}"} <= set(costs):
            print(f"r/s = {overlap}: rows of gscope and Spark agree: {same_rows(overlap)}")


if __name__ == "__main__":
    _main()
