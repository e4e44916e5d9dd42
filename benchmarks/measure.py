"""Runs commands in turn, A B C A B C …, and compares the medians of their costs.

    python -m benchmarks.measure twin='benchmarks/out/lfta_twin f.pcap o' 'cat=cat f.pcap'

Turns spread other work on the machine over all contestants; the median of five ignores an
occasional outlier. CPU seconds and peak memory are the kernel's accounting of the process and of
all processes it waited for (wait4), so a pipeline of processes is charged as a whole. Processes
that it leaves behind become children of this one (PR_SET_CHILD_SUBREAPER) and are charged as well.
For Spark's Python workers see ``benchmarks/uncharged.py``.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import os
import shlex
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.uncharged import Uncharged

if TYPE_CHECKING:
    import resource
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

RUNS = 5
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Contestant:
    """A contestant: commands that run one after another and are charged together.

    Attributes:
        name: name in the table.
        commands: argument lists. Their output is discarded unless ``output`` names a file.
        output: file for the standard output of all commands; None to discard it.
        prepare: called before every run, not measured (to empty a folder, say).
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    output: Path | None = None
    prepare: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run."""

    wall_s: float
    user_s: float
    sys_s: float
    peak_mb: float

    @property
    def cpu_s(self) -> float:
        """User and system time together."""
        return self.user_s + self.sys_s


class CommandFailedError(Exception):
    """A command of a contestant ended with an error; carries its standard error."""


def run_once(contestant: Contestant) -> Cost:
    """Run a contestant once and add up its commands.

    Raises:
        CommandFailedError: a command is missing or exited with an error.
    """
    if contestant.prepare is not None:
        contestant.prepare()
    wall = user = system = peak = 0.0
    target = contestant.output or Path(os.devnull)
    with target.open("wb") as output:
        for command in contestant.commands:
            cost = _run_command(command, output.fileno())
            wall += cost.wall_s
            user += cost.user_s
            system += cost.sys_s
            peak = max(peak, cost.peak_mb)
    return Cost(wall, user, system, peak)


def _run_command(command: Sequence[str], output: int) -> Cost:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    others = _children()
    begin = time.perf_counter()
    with (
        Uncharged() as uncharged,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE
        ) as process,
    ):
        assert process.stderr is not None
        complaint = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        tail = complaint.decode(errors="replace").strip()[-500:]
        message = f"{shlex.join(command)} exited with {process.returncode}: {tail}"
        raise CommandFailedError(message)
    charged = [usage, *_orphans(others)]
    # A child's peak starts at the size of its parent, so this process stays small.
    return Cost(
        wall,
        sum(each.ru_utime for each in charged) + uncharged.user_s,
        sum(each.ru_stime for each in charged) + uncharged.sys_s,
        max(each.ru_maxrss for each in charged) / 1024,
    )


def _orphans(others: AbstractSet[int]) -> Iterator[resource.struct_rusage]:
    """Return the cost of the processes that a command has left behind; wait for their ends.

    Args:
        others: children that this process had before the command, which are left alone.
    """
    while left := _children() - others:
        for process in left:
            yield os.wait4(process, 0)[2]


def _children() -> set[int]:
    """Return the processes whose parent is this one, ended or not."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(process) for each in lists for process in each.read_text().split()}


def race(contestants: Sequence[Contestant], runs: int = RUNS) -> dict[str, list[Cost]]:
    """Run all contestants in turn, ``runs`` times; report progress on standard error."""
    costs: dict[str, list[Cost]] = {contestant.name: [] for contestant in contestants}
    for turn in range(runs):
        for contestant in contestants:
            cost = run_once(contestant)
            costs[contestant.name].append(cost)
            line = f"run {turn + 1}/{runs} {contestant.name}: {cost.wall_s:.2f} s"
            print(line, file=sys.stderr)
    return costs


def median(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure."""
    return Cost(
        statistics.median(cost.wall_s for cost in costs),
        statistics.median(cost.user_s for cost in costs),
        statistics.median(cost.sys_s for cost in costs),
        statistics.median(cost.peak_mb for cost in costs),
    )


def table(costs: dict[str, list[Cost]], packets: int | None = None) -> str:
    """Return medians as a Markdown table; with ``packets``, also millions of packets a second."""
    head = ["contestant", "wall s", "min-max", "CPU s", "user s", "sys s", "peak MB"]
    if packets is not None:
        head += ["Mpkt/s (wall)", "Mpkt/s (CPU)"]
    rows = [head, ["---"] + ["---:"] * (len(head) - 1)]
    for name, runs in costs.items():
        middle = median(runs)
        walls = [cost.wall_s for cost in runs]
        cpu_s = statistics.median(cost.cpu_s for cost in runs)
        row = [name, f"{middle.wall_s:.2f}", f"{min(walls):.2f}-{max(walls):.2f}", f"{cpu_s:.2f}"]
        row += [f"{middle.user_s:.2f}", f"{middle.sys_s:.2f}", f"{middle.peak_mb:.0f}"]
        if packets is not None:
            row += [f"{packets / middle.wall_s / 1e6:.2f}", f"{packets / cpu_s / 1e6:.2f}"]
        rows.append(row)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def write_csv(costs: dict[str, list[Cost]], path: Path) -> None:
    """Write each run as one row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["contestant", "run", "wall_s", "user_s", "sys_s", "peak_mb"])
        for name, runs in costs.items():
            for number, cost in enumerate(runs, 1):
                figures = (cost.wall_s, cost.user_s, cost.sys_s, cost.peak_mb)
                writer.writerow([name, number, *(f"{figure:.4f}" for figure in figures)])


def chosen(contestants: Sequence[Contestant], only: Sequence[str] | None) -> list[Contestant]:
    """Return the contestants named by ``only``, or all.

    Raises:
        SystemExit: a name is unknown.
    """
    known = {contestant.name: contestant for contestant in contestants}
    unknown = [name for name in only or () if name not in known]
    if unknown:
        message = f"unknown contestant {unknown[0]!r}; there are {', '.join(known)}"
        raise SystemExit(message)
    return [known[name] for name in only or known]


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("commands", nargs="+", metavar="NAME=COMMAND")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--packets", type=int, help="packets in the input, for rates")
    parser.add_argument("--csv", type=Path, help="write every run here")
    arguments = parser.parse_args()
    contestants = []
    for text in arguments.commands:
        name, separator, command = text.partition("=")
        if not separator or not command:
            parser.error(f"{text!r} is not NAME=COMMAND")
        contestants.append(Contestant(name, (tuple(shlex.split(command)),)))
    costs = race(contestants, arguments.runs)
    print(table(costs, arguments.packets))
    if arguments.csv is not None:
        write_csv(costs, arguments.csv)


if __name__ == "__main__":
    _main()
