"""D4: CPU of a whole replay, daemon and job together, at ten rates, by groups and by packets.

    python -m benchmarks.sampling.load [--packets 10000000] [--runs 3]

The flow query counts packets and bytes by addresses and ports. ``groups`` keeps whole flows, as
gscope chooses for it; ``tuples`` keeps single packets, as the query asks with ``sampling
'tuples'``. ``off`` keeps everything. ``floor`` is the same query with a WHERE that rejects every
packet: reading and decoding, which are not sampled. ``start`` is the query over 1,000 packets:
Python, Java and Spark, which is subtracted; ``idle`` is the start of ``floor``, whose job has no
rows. The load is the rest of the CPU time as a share of that of ``off``.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Contestant, race, run_once
from benchmarks.records import write_records
from benchmarks.replay import FLOW_QUERY
from benchmarks.sampling.plots import Panel, plot_panels
from benchmarks.trace import OUT, PACKETS, trace, warm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RATES = tuple(f"{percent / 100:g}" for percent in range(2, 21, 2))
QUERIES = {"groups": FLOW_QUERY, "tuples": f"DEFINE {{ sampling 'tuples'; }} {FLOW_QUERY}"}
FEW_PACKETS = 1000


@dataclass(frozen=True, slots=True)
class Load:
    """The median cost of one contestant.

    Attributes:
        scheme: groups or tuples; otherwise off, floor, start or idle.
        rate: share of groups or packets that is kept; 1 where nothing is sampled.
        cpu_s: CPU seconds of all processes.
        load: CPU time without that of the start, as a share of that of ``off``.
        lowest: the load of the run with the least CPU time.
        highest: the load of the run with the most.
    """

    scheme: str
    rate: float
    cpu_s: float
    load: float
    lowest: float
    highest: float


def contestant(name: str, capture: Path, query: str, *more: str) -> Contestant:
    """Return a replay of ``capture`` to CSV."""
    gscope = str(Path(sys.executable).parent / "gscope")
    command = (gscope, "replay", f"main={capture}", "-e", query, "-o", "csv", "--quiet", *more)
    return Contestant(name, (command,))


def contestants(capture: Path, few: Path) -> Iterator[Contestant]:
    """Yield all contestants; the names of those that sample are scheme and rate."""
    rejecting = FLOW_QUERY.replace("FROM IP", "FROM IP WHERE len < 0")
    yield contestant("start", few, FLOW_QUERY)
    yield contestant("idle", few, rejecting)
    yield contestant("floor", capture, rejecting)
    yield contestant("off", capture, FLOW_QUERY)
    for rate in RATES:
        for scheme, query in QUERIES.items():
            yield contestant(f"{scheme} {rate}", capture, query, "--sample-rate", rate)


def prepare(few: Path) -> None:
    """Run each query once, so that kernels are compiled and Java has its class-data archive."""
    for one in contestants(few, few):
        if one.name.endswith(("start", "idle", RATES[0])):
            run_once(one)


def loads(capture: Path, few: Path, runs: int) -> list[Load]:
    """Return the loads of all contestants, which run in turn."""
    prepare(few)
    costs = race(list(contestants(capture, few)), runs)
    cpu = {name: [cost.cpu_s for cost in each] for name, each in costs.items()}
    start, idle, off = (statistics.median(cpu[name]) for name in ("start", "idle", "off"))
    rows = []
    for name, taken in cpu.items():
        scheme, _, rate = name.partition(" ")
        before = idle if scheme in ("idle", "floor") else start
        middle = statistics.median(taken)
        shares = ((each - before) / (off - start) for each in (middle, min(taken), max(taken)))
        rows.append(Load(scheme, float(rate or 1), middle, *shares))
    return rows


def table(rows: Sequence[Load]) -> Iterator[str]:
    """Yield the lines of a Markdown table, and of those that do not sample."""
    yield "| rate | groups, load | min-max | tuples, load | min-max |"
    yield "| ---: | ---: | ---: | ---: | ---: |"
    for rate in RATES:
        own = {row.scheme: row for row in rows if row.rate == float(rate)}
        cells = (f"{own[s].load:.3f} | {own[s].lowest:.3f}-{own[s].highest:.3f}" for s in QUERIES)
        yield f"| {rate} | {' | '.join(cells)} |"
    yield ""
    for row in rows:
        if row.scheme not in QUERIES:
            yield f"{row.scheme}: {row.cpu_s:.2f} s, load {row.load:.3f}"


def plot(rows: Sequence[Load], path: Path) -> None:
    """Plot the load by rate, beside the published one and the floor."""
    curves = {s: [(r.rate, r.load) for r in rows if r.scheme == s] for s in QUERIES}
    # The ends of the published curve; it is about linear.
    published = {"published, by groups": [(0.02, 0.05), (0.2, 0.2)]}
    floor = next(row.load for row in rows if row.scheme == "floor")
    lines = {"floor: reading and decoding": floor}
    title, label = "D4: CPU of daemon and job", "share of the CPU time of the full answer"
    plot_panels([Panel(title, label, curves, published, lines=lines)], path)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--packets", type=int, default=PACKETS)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    capture, few = trace(given.packets), trace(FEW_PACKETS)
    warm(capture)
    rows = loads(capture, few, given.runs)
    write_records(rows, OUT / "sampled_load.csv")
    print("\n".join(table(rows)))
    if importlib.util.find_spec("matplotlib") is not None:
        plot(rows, OUT / "sampled_load.png")


if __name__ == "__main__":
    _main()
