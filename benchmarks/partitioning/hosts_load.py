"""D5 to D8: CPU and bytes of the aggregating host on 1 to 4 hosts, and what 16 would cost.

    python -m benchmarks.partitioning.hosts_load [--only D5 D8] [--packets 3000000]

Needs root, ``openssl`` and the extra ``bench``. Hosts are network namespaces on one machine and
work one at a time: first the others, then the aggregating host alone. Its load is the CPU time of
its processes, less that of the same work on next to no traffic (``start_s``: Python, Java and
kernels), for each second of the trace. Answers must be the same on any number of hosts. More than
four hosts are simulated, see ``simulate.py``. ``--at-once`` measures two hosts that capture and
aggregate at the same time, beside the same two one at a time. Costs are kept in ``out/``, so that a
benchmark that was stopped continues; delete ``partitioning_costs-*.json`` to measure again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.partitioning.figures import EXPERIMENTS
from benchmarks.partitioning.plans import ANSWERS, CURVES, ROWS, Curve, Work
from benchmarks.partitioning.plots import plot_experiment
from benchmarks.partitioning.simulate import answer_rows, fitted, lfta_rows
from benchmarks.partitioning.stations import Cost, Stations
from benchmarks.partitioning.traffic import SECONDS, traffic, write_shares
from benchmarks.records import write_records
from benchmarks.trace import OUT
from gscope.queries.run_folder.whole_file import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from benchmarks.sampling.connections import Packets

MEASURED = (1, 2, 3, 4)
SIMULATED = (8, 12, 16)
SLOTS = 16_384
"""Of the group table of each LFTA, for any number of hosts."""

START_PACKETS = 1_000
_START = "start of "


@dataclass(frozen=True, slots=True)
class Point:
    """A number of hosts on a curve.

    Attributes:
        experiment: D5 to D8.
        curve: its name.
        hosts: their number.
        is_simulated: whether load and bytes are computed, see ``simulate.py``.
        load: CPU seconds of the aggregating host for each second of the trace, without the start.
        received_bytes_s: bytes that its link received for each second of the trace.
        tuples: rows of LFTAs that it read, its own included.
        evicted: those of them that a larger group table would have saved.
        cpu_s: CPU seconds with the start.
        start_s: CPU seconds on next to no traffic.
    """

    experiment: str
    curve: str
    hosts: int
    is_simulated: bool
    load: float
    received_bytes_s: float
    tuples: int
    evicted: int
    cpu_s: float
    start_s: float


class Measuring:
    """Costs of work, each measured once and kept in a file, so that a benchmark can be continued.

    Args:
        packets: the traffic.
        folder: for all files.
        kept: the file of costs.
    """

    def __init__(self, packets: Packets, folder: Path, kept: Path) -> None:
        self._packets = packets
        self._start = traffic(START_PACKETS)
        self._folder = folder
        self._kept = kept
        self._known: dict[str, Cost] = {}
        if kept.exists():
            found = json.loads(kept.read_text())
            self._known = {key: Cost(**each) for key, each in found.items()}

    def cost(self, work: Work, hosts: int) -> Cost:
        """Return what a number of hosts costs, after comparing the answers with those of one."""
        found = self._once(f"{work.name} on {hosts}", lambda: self.once(work, hosts))
        for result, digest in found.digests.items():
            assert found.rows[result], f"no rows of {result}"
            others = {name: each.digests.get(result) for name, each in self._measured().items()}
            wrong = [name for name, other in others.items() if other not in (None, digest)]
            assert not wrong, f"{work.name} on {hosts}: other rows of {result} than {wrong[0]}"
        return found

    def once(self, work: Work, hosts: int, *, at_once: bool = False) -> Cost:
        """Return what the work costs, measured again."""
        return self._run(work, hosts, self._packets, at_once=at_once)

    def start_s(self, work: Work, hosts: int) -> float:
        """Return the CPU time of the work on next to no traffic, on at most two hosts."""
        hosts = min(hosts, 2)
        key = f"{_START}{work.name} on {hosts}"
        return self._once(key, lambda: self._run(work, hosts, self._start)).cpu_s

    def rows(self) -> dict[str, int]:
        """Return the number of rows of each result."""
        return {
            name: rows for each in self._measured().values() for name, rows in each.rows.items()
        }

    def _measured(self) -> dict[str, Cost]:
        return {key: each for key, each in self._known.items() if not key.startswith(_START)}

    def _once(self, key: str, measure: Callable[[], Cost]) -> Cost:
        if key not in self._known:
            self._known[key] = measure()
            found = {name: asdict(each) for name, each in self._known.items()}
            replace_file(self._kept, json.dumps(found, indent=1))
        return self._known[key]

    def _run(self, work: Work, hosts: int, packets: Packets, *, at_once: bool = False) -> Cost:
        began = time.monotonic()
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            folder.chmod(0o755)
            captures = folder / "captures"
            captures.mkdir(mode=0o755)
            shares = write_shares(packets, work.by, hosts, captures)
            found = Stations(folder, shares, SLOTS).cost(work, at_once=at_once)
        finally:
            shutil.rmtree(folder)
        report(
            f"{work.name} on {hosts}: {found.cpu_s:.2f} s CPU, {found.received_bytes:,} bytes, "
            f"{found.tuples:,} tuples, {time.monotonic() - began:.0f} s"
        )
        return found


def curve_work(curve: Curve, hosts: int) -> tuple[Work, ...]:
    """Return what the hosts of a curve do; one host answers everything itself, on every curve."""
    if hosts > 1:
        return curve.work
    named = [(q, r) for work in curve.work for q, r in zip(work.queries, work.results, strict=True)]
    named.sort(reverse=True)
    return (Work(tuple(q for q, _ in named), ANSWERS, "none", tuple(r for _, r in named)),)


def measured(measuring: Measuring, packets: Packets, curve: Curve) -> list[Point]:
    """Return the measured points of a curve."""
    points = []
    for hosts in MEASURED:
        work = curve_work(curve, hosts)
        costs = [measuring.cost(each, hosts) for each in work]
        cpu_s = sum(each.cpu_s for each in costs)
        start_s = sum(measuring.start_s(each, hosts) for each in work)
        tuples = sum(each.tuples for each in costs)
        least = sum(lfta_rows(packets, each, hosts)[0] for each in work)
        received = sum(each.received_bytes for each in costs) if hosts > 1 else 0
        points.append(
            Point(
                curve.experiment,
                curve.name,
                hosts,
                False,
                (cpu_s - start_s) / SECONDS,
                received / SECONDS,
                tuples,
                max(0, tuples - least),
                cpu_s,
                start_s,
            )
        )
    return points


def simulated(
    packets: Packets, curve: Curve, points: Sequence[Point], rows: dict[str, int]
) -> list[Point]:
    """Return the points of a curve beyond the measured ones."""

    several = [point for point in points if point.hosts > 1]
    # Evictions are not counted in the traffic: their share is that of the most hosts measured.
    most = several[-1]
    growth = most.tuples / (most.tuples - most.evicted) if most.evicted else 1.0

    def features(hosts: int) -> tuple[list[float], list[float]]:
        counts = [lfta_rows(packets, work, hosts) for work in curve.work]
        answers = answer_rows(curve, rows, hosts)
        total, remote = sum(each for each, _ in counts), sum(each for _, each in counts)
        return [1 / hosts, growth * total, answers], [growth * remote, answers]

    found = {point.hosts: features(point.hosts) for point in several}
    load = fitted([found[p.hosts][0] for p in several], [p.load for p in several])
    size = fitted([found[p.hosts][1] for p in several], [p.received_bytes_s for p in several])
    made = []
    for hosts in SIMULATED:
        of_load, of_size = features(hosts)
        made.append(
            Point(
                curve.experiment,
                curve.name,
                hosts,
                True,
                sum(w * x for w, x in zip(load, of_load, strict=True)),
                sum(w * x for w, x in zip(size, of_size, strict=True)),
                round(of_load[1]),
                round(of_load[1] * (1 - 1 / growth)),
                0.0,
                0.0,
            )
        )
    return made


def experiment(name: str, packets: Packets, measuring: Measuring) -> list[Point]:
    """Return all points of an experiment, after plotting them."""
    curves = [curve for curve in CURVES if curve.experiment == name]
    points: list[Point] = []
    for curve in curves:
        found = measured(measuring, packets, curve)
        points += found + simulated(packets, curve, found, measuring.rows())
    path = OUT / f"partitioning_{name}.csv"
    write_records(points, path)
    plot_experiment(name, len(packets.at) / SECONDS, path, path.with_suffix(".svg"))
    return points


def table(points: Iterable[Point]) -> str:
    """Return points as a Markdown table: load in percent of a core, and kB/s."""
    lines = [
        "| | curve | hosts | load % | received kB/s | tuples | evicted |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {p.experiment} | {p.curve} | {p.hosts}{' (simulated)' if p.is_simulated else ''} | "
        f"{100 * p.load:.2f} | {p.received_bytes_s / 1e3:,.1f} | {p.tuples:,} | {p.evicted:,} |"
        for p in points
    ]
    return "\n".join(lines)


def race_at_once(measuring: Measuring) -> str:
    """Return costs of two hosts that work at the same time, beside one after the other."""
    lines = ["| work | order | CPU s | received bytes |", "| --- | --- | ---: | ---: |"]
    for curve in CURVES:
        if curve.name == "naive" and curve.experiment in ("D5", "D8"):
            (work,) = curve.work
            assert work.sends == ROWS
            for name, at_once in (("one at a time", False), ("at once", True)):
                found = measuring.once(work, 2, at_once=at_once)
                lines.append(
                    f"| {curve.experiment} | {name} | {found.cpu_s:.2f} |"
                    f" {found.received_bytes:,} |"
                )
    return "\n".join(lines)


def report(text: str) -> None:
    """Report progress on standard error."""
    print(text, file=sys.stderr, flush=True)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--only", nargs="+", choices=sorted(EXPERIMENTS), default=sorted(EXPERIMENTS)
    )
    parser.add_argument("--packets", type=int, default=3_000_000)
    parser.add_argument("--at-once", action="store_true", help="compare two hosts at once")
    arguments = parser.parse_args()
    # Namespaces and processes are removed at the end of their contexts.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    subprocess.run(["openssl", "version"], check=True, capture_output=True)
    OUT.mkdir(exist_ok=True)
    packets = traffic(arguments.packets)
    with tempfile.TemporaryDirectory(prefix="gscope-hosts-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        kept = OUT / f"partitioning_costs-{arguments.packets}.json"
        measuring = Measuring(packets, folder, kept)
        if arguments.at_once:
            print(race_at_once(measuring))
            return
        for each in arguments.only:
            print(table(experiment(each, packets, measuring)), flush=True)


if __name__ == "__main__":
    _main()
