"""S2: time to answer 2 to 32 overlapping windows: shared slices, unshared ones, and SQL.

    python -m benchmarks.windows.sharing [--queries 2 4 8 16 32] [--runs 3] [--ungrouped]

The windows are the first set of each size of ``syns.py``, by source address, over 523,761 SYNs of a
day. Contestants are whole replays with each plan of windows, and DuckDB, which joins every tuple to
each window that holds it; its input is a Parquet file with two columns. The last table is the CPU
time of the LFTAs alone, the common part of all windows of a set, after kernels have been compiled.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import RUNS, Contestant, median, race, run_once, table, write_csv
from benchmarks.trace import OUT
from benchmarks.windows.plots import plot_curves
from benchmarks.windows.stage import program, query_texts, run
from benchmarks.windows.syns import QUERIES, Syns, capture, syns, window_sets

PLANS = ("paired", "paned", "unshared")
_Windows = list[tuple[int, int]]


def contestants(trace: Syns, queries: int, *, is_grouped: bool) -> list[Contestant]:
    """Return the contestants for a set of ``queries`` windows."""
    (windows,) = window_sets(queries, 1)
    name = f"sharing-{queries}"
    file = OUT / f"{name}.gsql"
    file.write_text(";\n".join(query_texts(windows, is_grouped=is_grouped)))
    gscope = str(Path(sys.executable).parent / "gscope")
    found = []
    for plan in PLANS:
        answers = OUT / f"{name}-{plan}"
        command = (gscope, "replay", f"main={capture(trace)}", "--quiet", "-o", "csv")
        command += ("-w", str(answers), "-q", str(file), "--window-plan", plan)
        prepare = lambda answers=answers: shutil.rmtree(answers, ignore_errors=True)  # noqa: E731
        found.append(Contestant(f"{plan}, {queries} queries", (command,), prepare=prepare))
    brute = (sys.executable, "-m", "benchmarks.windows.brute_force", str(_columns(trace)))
    brute += ("srcIP" if is_grouped else "", *(f"{range_}/{slide}" for range_, slide in windows))
    output = OUT / f"{name}-duckdb.csv"
    found.append(Contestant(f"DuckDB, {queries} queries", (brute,), output))
    return found


def _columns(trace: Syns) -> Path:
    path = capture(trace).with_suffix(".parquet")
    if not path.exists():
        pq.write_table(pa.table({"t": trace.times_s.astype(int), "srcIP": trace.sources}), path)
    return path


def common_part(trace: Syns, queries: int, runs: int, *, is_grouped: bool) -> dict[str, float]:
    """Return the median CPU seconds of the LFTAs of a set by plan."""
    (windows,) = window_sets(queries, 1)
    seconds = {}
    for plan in PLANS:
        compiled = program(windows, plan, is_grouped=is_grouped)
        run(capture(trace), compiled)
        found = [run(capture(trace), compiled).cpu_s for _ in range(runs)]
        seconds[plan] = statistics.median(found)
    return seconds


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--queries", type=int, nargs="+", default=list(QUERIES))
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--ungrouped", action="store_true", help="count all tuples of a window")
    arguments = parser.parse_args()
    is_grouped = not arguments.ungrouped
    trace, runs = syns(), arguments.runs
    costs = {}
    for queries in arguments.queries:
        everyone = contestants(trace, queries, is_grouped=is_grouped)
        for one in everyone:
            run_once(one)
        costs |= race(everyone, runs)
    print(table(costs))
    name = "windows_sharing" if is_grouped else "windows_sharing_ungrouped"
    write_csv(costs, OUT / f"{name}.csv")
    curves = {
        plan: [(n, median(costs[f"{plan}, {n} queries"]).cpu_s) for n in arguments.queries]
        for plan in (*PLANS, "DuckDB")
    }
    title = "by source" if is_grouped else "not grouped"
    plot_curves({title: curves}, "queries", "CPU s", OUT / f"{name}.png")
    print(f"\n| queries | {' | '.join(PLANS)} |\n| ---: |{' ---: |' * len(PLANS)}")
    for queries in arguments.queries:
        seconds = common_part(trace, queries, runs, is_grouped=is_grouped)
        print(f"| {queries} | {' | '.join(f'{seconds[plan]:.2f}' for plan in PLANS)} |", flush=True)


if __name__ == "__main__":
    _main()
