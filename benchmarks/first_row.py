"""A small capture: time to the first row of the answer, cold and warm, and its phases.

    python -m benchmarks.first_row [--packets 1000] [--runs 5] [--demo]

A cold run is a first use: with an empty cache folder, kernels are compiled and Java has no
class-data archive. A warm run is a later use, when the archive has been built. The time is that
from the start of the process to the first row on its standard output. The last warm run is
repeated with ``--timings`` for the phases. ``--demo`` takes the capture and the query of ``make
demo``.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.demo_trace import PACKETS as DEMO_PACKETS
from benchmarks.demo_trace import PROFILE
from benchmarks.installed import compile_modules
from benchmarks.measure import RUNS
from benchmarks.replay import FLOW_QUERY
from benchmarks.trace import OUT, trace
from gscope.capture.sources.synthetic.source import write_pcap

PACKETS = 1_000
ARCHIVE_S = 180


def first_row_s(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return the seconds from the start to the first row after the heading, and to the end.

    Raises:
        SystemExit: the command failed or printed no row.
    """
    begin = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        row = process.stdout.readline()
        first = time.perf_counter() - begin
        process.stdout.read()
    if process.returncode != 0 or not row:
        message = f"{command[0]} exited with {process.returncode}, first row {row!r}"
        raise SystemExit(message)
    return first, time.perf_counter() - begin


def usable_cache(folder: str) -> dict[str, str]:
    """Return an environment with a cache below ``folder`` that the user of root's runs can access.

    Otherwise root's runs would keep kernels and archives in the system's cache and never start
    cold.
    """
    Path(folder).chmod(0o755)
    (Path(folder) / "gscope").mkdir(mode=0o755)
    return {**os.environ, "XDG_CACHE_HOME": folder}


def build_archive(command: list[str], environment: dict[str, str]) -> None:
    """Let a run build the class-data archive in its background process, and wait for that."""
    first_row_s(command, environment)
    until = time.monotonic() + ARCHIVE_S
    folder = Path(environment["XDG_CACHE_HOME"])
    while not any(path.suffix in {".jsa", ".aot"} for path in folder.rglob("jvm/*.*")):
        if time.monotonic() > until:
            message = f"no class-data archive within {ARCHIVE_S} s"
            raise SystemExit(message)
        time.sleep(0.5)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--packets", type=int, default=PACKETS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--demo", action="store_true")
    arguments = parser.parse_args()
    compile_modules()
    gscope = str(Path(sys.executable).parent / "gscope")
    if arguments.demo:
        capture, query = OUT / "demo.pcap", ("-q", "top_talkers")
        OUT.mkdir(exist_ok=True)
        write_pcap(PROFILE, capture, DEMO_PACKETS)
    else:
        capture, query = trace(arguments.packets), ("-e", FLOW_QUERY)
    command = [gscope, "replay", str(capture), *query, "-o", "csv"]
    figures: list[tuple[str, int, float, float]] = []
    # A background process of the last run may still be writing there.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        warm = usable_cache(cache)
        build_archive(command, warm)
        figures += [
            ("warm", number, *first_row_s(command, warm)) for number in range(1, arguments.runs + 1)
        ]
        subprocess.run([*command, "--timings"], env=warm, stdout=subprocess.DEVNULL, check=True)
    for number in range(1, arguments.runs + 1):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
            cold = {**usable_cache(cache), "GSCOPE_NO_ARCHIVE": "1"}
            figures.append(("cold", number, *first_row_s(command, cold)))
    print("| start | first row s | end s |\n| --- | ---: | ---: |")
    for start in ("cold", "warm"):
        first = statistics.median(row[2] for row in figures if row[0] == start)
        end = statistics.median(row[3] for row in figures if row[0] == start)
        print(f"| {start} | {first:.2f} | {end:.2f} |")
    with (OUT / "first_row.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["start", "run", "first_row_s", "end_s"])
        writer.writerows(figures)


if __name__ == "__main__":
    _main()
