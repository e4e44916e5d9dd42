"""Fifty queries of the library at once against one alone: the gain of shared scans and steps.

    python -m benchmarks.many_queries [--packets 2000000] [--runs 5] [--one flow top_talkers …]
        [--compare] [--cold | --new]

Each contestant is a whole ``gscope replay`` to CSV files, with a class-data archive and kernels in
a cache of the race. It runs before the race until a run has optimised no further module of its
kernel, because the optimiser ends with its run. ``fifty`` answers
all queries of ``benchmarks/library_set.py``. It is compared with the first of ``--one``: fifty
times the queries should take at most 2.5 times the time. ``--compare`` then answers
each query alone and compares the rows with those of fifty at once. ``--cold`` compiles the kernels
of one and of fifty in processes without a cache. ``--new`` measures the time from the start of the
command to the first row on its standard output, for one query and for fifty whose kernels have just
been removed; the decoder and Java's class-data archive are there in all runs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.first_row import build_archive, first_row_s, usable_cache
from benchmarks.installed import compile_modules
from benchmarks.library_set import fifty_queries
from benchmarks.measure import RUNS, Contestant, median, race, run_once, table, write_csv
from benchmarks.new_queries import forget_kernels
from benchmarks.trace import OUT, trace, warm

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.measure import Cost

PACKETS = 2_000_000
ONE = ("flow", "top_talkers", "port_scan", "retransmissions", "handshake_delay")
"""Queries that run alone; the requirement refers to the first."""

ALL = "fifty"
MOST_TIMES = 2.5
MOST_TIMES_NEW = 3.0

_COLD = (
    "import sys; from pathlib import Path;"
    "from gscope.capture.interface.build_lftas import compiled_engines;"
    "from gscope.capture.settings import CaptureSettings, InterfaceSettings;"
    "from gscope.queries.compile import QueryText, CompileContext, compile_queries;"
    "texts = [QueryText(Path(p).read_text(), p) for p in sys.argv[1:]];"
    "program = compile_queries(texts, CompileContext(('main',))).program;"
    "compiled_engines(program, CaptureSettings((InterfaceSettings('main', ('none',)),)))"
)
"""Program that compiles the kernel of the query files named as arguments."""


def query_files(folder: Path) -> dict[str, Path]:
    """Write the queries of the set as files in ``folder``; return their paths."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = {}
    for name, text in fifty_queries().items():
        files[name] = folder / f"{name}.gsql"
        files[name].write_text(text)
    return files


def contestant(name: str, capture: Path, files: Iterable[Path]) -> Contestant:
    """Return a replay that answers the queries in ``files`` into a folder of its own."""
    return Contestant(name, ((*replay(capture, files), "-o", "csv", "-w", str(answers(name))),))


def replay(capture: Path, files: Iterable[Path]) -> list[str]:
    """Return a command that answers the queries in ``files``, without where and how."""
    gscope = str(Path(sys.executable).parent / "gscope")
    asked = [part for file in files for part in ("-q", str(file))]
    return [gscope, "replay", f"main={capture}", "--quiet", *asked]


def answers(name: str) -> Path:
    """Return the folder with the answers of a contestant."""
    return OUT / "many-queries" / name


def ratios(costs: dict[str, list[Cost]], alone: Sequence[str]) -> str:
    """Return the cost of all queries in multiples of each single one, as a Markdown table."""
    lines = [f"| {ALL} against | wall | CPU |", "| --- | ---: | ---: |"]
    everything = median(costs[ALL])
    cpu = statistics.median(cost.cpu_s for cost in costs[ALL])
    singles = {name: median(costs[name]) for name in alone}
    cpus = {name: statistics.median(c.cpu_s for c in costs[name]) for name in alone}
    for name in alone:
        wall_times = everything.wall_s / singles[name].wall_s
        lines.append(f"| {name} | {wall_times:.1f} | {cpu / cpus[name]:.1f} |")
    wall_times = everything.wall_s / statistics.median(one.wall_s for one in singles.values())
    cpu_times = cpu / statistics.median(cpus.values())
    lines.append(f"| the median of these | {wall_times:.1f} | {cpu_times:.1f} |")
    return "\n".join(lines)


def differences(names: Iterable[str], capture: Path, files: dict[str, Path]) -> list[str]:
    """Return the queries whose rows differ between alone and all; order does not count."""
    wrong = []
    for name in names:
        run_once(contestant("alone", capture, [files[name]]))
        alone, together = (_rows(answers(folder) / f"{name}.csv") for folder in ("alone", ALL))
        print(f"{name}: {len(alone) - 1} rows alone", file=sys.stderr)
        if alone != together:
            wrong.append(name)
    return wrong


def _rows(path: Path) -> list[str]:
    return sorted(path.read_text().splitlines())


def cold_seconds(files: Sequence[Path]) -> tuple[float, float]:
    """Return wall and CPU time of compiling the kernel of a query set with a compiled decoder."""
    with tempfile.TemporaryDirectory(prefix="gscope-cold-") as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        environment.pop("NUMBA_CACHE_DIR", None)
        first = files[0].with_name("decoder.gsql")
        first.write_text(
            "SELECT time, len FROM PKT WHERE len > 1;"
            " SELECT tb, count(*) FROM PKT GROUP BY time/9 AS tb"
        )
        command = [sys.executable, "-c", _COLD]
        subprocess.run([*command, str(first)], check=True, env=environment)
        before, began = os.times(), time.perf_counter()
        subprocess.run([*command, *map(str, files)], check=True, env=environment)
        wall, after = time.perf_counter() - began, os.times()
    used = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return wall, used


def first_rows(capture: Path, sets: dict[str, Sequence[Path]], runs: int) -> str:
    """Return the seconds to the rows of new query sets, run in turn, as a Markdown table."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in sets}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        environment = usable_cache(folder)
        # CSV on standard output holds the rows of one query only.
        commands = {name: [*replay(capture, files), "-o", "ndjson"] for name, files in sets.items()}
        build_archive(next(iter(commands.values())), environment)
        for _ in range(runs):
            for name, command in commands.items():
                forget_kernels(Path(folder))
                found[name].append(first_row_s(command, environment))
    lines = ["| new | first row s | min-max | times one | all rows s |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    one = 0.0
    for name, times in found.items():
        firsts, ends = zip(*times, strict=True)
        middle = statistics.median(firsts)
        one = one or middle
        extent = f"{min(firsts):.2f}-{max(firsts):.2f}"
        end = statistics.median(ends)
        lines.append(f"| {name} | {middle:.2f} | {extent} | {middle / one:.2f} | {end:.2f} |")
    return "\n".join(lines)


def optimise(field: Sequence[Contestant], cache: Path) -> None:
    """Run each contestant until its kernel is optimised, or once if the capture is too short."""
    for each in field:
        before = -1
        while (made := _optimised(cache)) > before:
            before = made
            run_once(each)


def _optimised(cache: Path) -> int:
    """Return how many files of optimised code a cache holds."""
    return sum(not path.name.endswith(".quick.o") for path in cache.rglob("lfta/*.o"))


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--packets", type=int, default=PACKETS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--one", nargs="+", default=list(ONE), metavar="NAME")
    parser.add_argument("--compare", action="store_true", help="compare the answers, too")
    parser.add_argument("--cold", action="store_true", help="only compile, without a cache")
    parser.add_argument("--new", action="store_true", help="only the first rows of new queries")
    arguments = parser.parse_args()
    files = query_files(OUT / "many-queries" / "queries")
    if arguments.cold:
        for name, chosen in (("flow", [files["flow"]]), (ALL, list(files.values()))):
            wall, cpu = cold_seconds(chosen)
            print(f"{name}: {wall:.1f} s to compile, {cpu:.1f} s of CPU")
        return
    capture = trace(arguments.packets)
    warm(capture)
    compile_modules()
    if arguments.new:
        sets = {arguments.one[0]: [files[arguments.one[0]]], ALL: list(files.values())}
        print(first_rows(capture, sets, arguments.runs))
        print(f"\nat most {MOST_TIMES_NEW} times is required")
        return
    field = [contestant(name, capture, [files[name]]) for name in arguments.one]
    field.append(contestant(ALL, capture, files.values()))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ.update(usable_cache(folder))
        first = [files[arguments.one[0]]]
        build_archive([*replay(capture, first), "-o", "csv"], dict(os.environ))
        optimise(field, Path(folder))
        costs = race(field, arguments.runs)
        print(table(costs, arguments.packets))
        print(
            f"\n{ratios(costs, arguments.one)}\n\n"
            f"at most {MOST_TIMES} times is required against {arguments.one[0]}"
        )
        write_csv(costs, OUT / "many_queries.csv")
        if arguments.compare:
            wrong = differences(files, capture, files)
            print(f"answers that differ: {', '.join(wrong) or 'none'} of {len(files)}")


if __name__ == "__main__":
    _main()
