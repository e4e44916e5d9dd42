"""S1: tuples that go up from the LFTAs for sets of overlapping windows.

They are shown by where the windows are assembled.

    python -m benchmarks.windows.shipped [--sets 50] [--lftas 1]

For 2 to 32 windows of one slide, `SELECT srcIP, count(*) FROM TCP [RANGE r SLIDE s] GROUP BY srcIP`
and the same without groups, over 523,761 SYNs of a day (``syns.py``):

- full push-down: the rows of all windows, those that end within the day;
- paired, paned: the rows of slices, composed for all windows of a set;
- unshared: the rows of paired slices of each window apart;
- pull-up: all tuples.

The windows of a set share all slices, as published. A plan of gscope lets a window have slices of
its own if sharing would give it more than 64 times as many (decision 45).

Two things check the counts, and must be equal: for the case without groups, a count of edges that
uses nothing of gscope; and, for the first ``--lftas`` sets of each size, the tuples that the LFTAs
of a compiled program really emit, with the slices of that program.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.records import write_records
from benchmarks.trace import OUT
from benchmarks.windows.plots import plot_curves
from benchmarks.windows.stage import program, run
from benchmarks.windows.syns import DAY_S, QUERIES, SETS, Syns, capture, syns, window_sets
from gscope.queries.plan.window_node import WindowNode
from gscope.queries.plan.windows.slicing import Slicing
from gscope.queries.plan.windows.window import SlidingWindow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WAYS = ("full push-down", "paired", "paned", "unshared", "pull-up")
_Windows = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Shipped:
    """Tuples for one set of windows.

    Attributes:
        number: the number of the set among those of its size.
    """

    queries: int
    number: int
    is_grouped: bool
    way: str
    tuples: int


class Counter:
    """Counts rows of slices and windows over the tuples of a trace."""

    def __init__(self, trace: Syns) -> None:
        seconds = np.floor(trace.times_s).astype(np.int64)
        self._first_of = np.searchsorted(seconds, np.arange(DAY_S + 1))
        order = np.argsort(trace.sources, kind="stable")
        is_same = trace.sources[order][1:] == trace.sources[order][:-1]
        self._previous = np.full(len(order), -1, np.int32)
        self._previous[order[1:][is_same]] = order[:-1][is_same]

    def slices(self, slicing: Slicing, *, is_grouped: bool) -> int:
        """Return the rows of all slices: a source counts once in each."""
        seconds = np.arange(DAY_S)
        numbers = np.zeros_like(seconds)
        for period, shift in slicing.edges:
            numbers += (seconds + shift) // period
        edges = np.flatnonzero(np.diff(numbers, prepend=-1))
        firsts = self._first_of[edges]
        sizes = np.diff(firsts, append=len(self._previous))
        if not is_grouped:
            return int(np.count_nonzero(sizes))
        return int(np.count_nonzero(self._previous < np.repeat(firsts, sizes)))

    def windows(self, range_: int, slide: int, *, is_grouped: bool) -> int:
        """Return the rows of all windows that end within the day."""
        ends = np.arange(slide, DAY_S + 1, slide)
        begins = self._first_of[(ends - range_).clip(min=0)]
        ends = self._first_of[ends]
        if not is_grouped:
            return int(np.count_nonzero(begins < ends))
        pairs = zip(begins.tolist(), ends.tolist(), strict=True)
        return sum(int(np.count_nonzero(self._previous[a:b] < a)) for a, b in pairs)

    def rows(self, windows: _Windows, *, is_grouped: bool) -> Iterator[tuple[str, int]]:
        """Yield each way with the tuples that it ships for a set of windows."""
        sliding = [SlidingWindow(range_, slide) for range_, slide in windows]
        slicings = {
            "paired": [Slicing.of(sliding)],
            "paned": [Slicing.paned(sliding)],
            "unshared": [Slicing.of([window]) for window in sliding],
        }
        of_windows = (self.windows(*window, is_grouped=is_grouped) for window in windows)
        yield "full push-down", sum(of_windows)
        for way, each in slicings.items():
            yield way, sum(self.slices(one, is_grouped=is_grouped) for one in each)
        yield "pull-up", len(self._previous)


def counted_apart(trace: Syns, windows: _Windows) -> tuple[int, int]:
    """Return the windows of a day and its slices with tuples, from the definition of windows alone.

    A window of range r ends at every multiple of its slide and begins r earlier. Wherever one ends
    or begins, a slice ends.
    """
    ends = [(end, r) for r, s in windows for end in range(s, DAY_S + r + 1, s)]
    edges = sorted({edge for end, r in ends for edge in (end, end - r) if 0 < edge < DAY_S})
    slices, _ = np.histogram(trace.times_s, [0, *edges, DAY_S])
    return sum(end <= DAY_S for end, _ in ends), int(np.count_nonzero(slices))


def check_lftas(trace: Syns, counter: Counter, windows: _Windows, *, is_grouped: bool) -> None:
    """Check that the LFTAs of each plan emit each row of their slices once."""
    for way in ("paired", "paned", "unshared"):
        compiled = program(windows, way, is_grouped=is_grouped)
        slicings = {
            n.slices.slicing for n in compiled.nodes if isinstance(n, WindowNode) and n.slices
        }
        expected = sum(counter.slices(each, is_grouped=is_grouped) for each in slicings)
        tuples = run(capture(trace), compiled).tuples
        assert tuples == expected, (windows, way, tuples, expected)
        print(
            f"{len(windows)} queries, {way}: {tuples} tuples of {len(slicings)} LFTAs", flush=True
        )


def measure(sets: int, lftas: int) -> list[Shipped]:
    """Return the tuples of all sets."""
    trace = syns()
    counter, rows = Counter(trace), []
    for queries in QUERIES:
        for number, windows in enumerate(window_sets(queries, sets)):
            for is_grouped in (False, True):
                found = dict(counter.rows(windows, is_grouped=is_grouped))
                if not is_grouped:
                    counted = found["full push-down"], found["paired"]
                    assert counted == counted_apart(trace, windows), (windows, counted)
                if number < lftas:
                    check_lftas(trace, counter, windows, is_grouped=is_grouped)
                rows += [Shipped(queries, number, is_grouped, *each) for each in found.items()]
        print(f"{queries} queries: {sets} sets", flush=True)
    return rows


def table(rows: Sequence[Shipped], *, is_grouped: bool) -> str:
    """Return means over sets as a Markdown table."""
    lines = [f"| queries | {' | '.join(WAYS)} |", "| ---: |" + " ---: |" * len(WAYS)]
    for queries in dict.fromkeys(row.queries for row in rows):
        means = [mean(rows, queries, way, is_grouped=is_grouped) for way in WAYS]
        lines.append(f"| {queries} | {' | '.join(f'{each:,.0f}' for each in means)} |")
    return "\n".join(lines)


def mean(rows: Sequence[Shipped], queries: int, way: str, *, is_grouped: bool) -> float:
    """Return the mean tuples of the sets of a size."""
    return statistics.mean(
        row.tuples
        for row in rows
        if (row.queries, row.way, row.is_grouped) == (queries, way, is_grouped)
    )


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--sets", type=int, default=SETS, help="sets of windows of each size")
    parser.add_argument("--lftas", type=int, default=1, help="sets of each size to run as LFTAs")
    arguments = parser.parse_args()
    rows = measure(arguments.sets, arguments.lftas)
    write_records(rows, OUT / "windows_shipped.csv")
    for is_grouped in (False, True):
        print(f"\n{'by source' if is_grouped else 'without groups'}\n")
        print(table(rows, is_grouped=is_grouped))
    panels = {
        "grouped by source" if is_grouped else "not grouped": {
            way: [(queries, mean(rows, queries, way, is_grouped=is_grouped)) for queries in QUERIES]
            for way in WAYS
        }
        for is_grouped in (True, False)
    }
    plot_curves(panels, "queries", "tuples shipped", OUT / "windows_shipped.png")
    shutil.rmtree(OUT / "windows-log", ignore_errors=True)


if __name__ == "__main__":
    _main()
