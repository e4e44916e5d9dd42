"""What overlapping windows cost the LFTAs, in CPU seconds and in tuples that they ship.

    python -m benchmarks.windows.lfta [--packets 4000000] [--runs 5]

An LFTA knows slices, not windows. With a fixed slide, its cost cannot depend on the range. With a
fixed range, slices get shorter as windows overlap more: a slice then holds fewer packets of each
group, so the LFTA ships more tuples, at most one for each packet. Contestants run in turn; each
figure is a median.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.measure import RUNS
from benchmarks.trace import trace, warm
from benchmarks.windows.stage import Stage, run
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.queries.plan.program import Program

OVERLAPS = (1, 10, 100, 1000)
RANGE_S = 100
"""The fixed range, and the length of a trace of ten million packets."""
KEYS = ("", "protocol", "srcIP", "srcIP, destIP")


@dataclass(frozen=True, slots=True)
class Case:
    """Windows of a range and slide, grouped by some columns."""

    range_ms: int
    slide_ms: int
    keys: str

    @property
    def program(self) -> Program:
        """The compiled query."""
        keys, group = (f"{self.keys}, ", f" GROUP BY {self.keys}") if self.keys else ("", "")
        text = (
            f"SELECT window_end, {keys}count(*) AS packets, sum(len) AS bytes FROM IPV4"
            f" [RANGE '{self.range_ms} ms' SLIDE '{self.slide_ms} ms']{group}"
        )
        context = CompileContext(("main",))
        return compile_queries([QueryText(text, "windows")], context).program


def cases(*, is_slide_fixed: bool) -> list[list[Case]]:
    """Return a row of cases for each grouping, a case for each overlap."""
    return [
        [
            Case(1000 * overlap, 1000, keys)
            if is_slide_fixed
            else Case(1000 * RANGE_S, 1000 * RANGE_S // overlap, keys)
            for overlap in OVERLAPS
        ]
        for keys in KEYS
    ]


def measured(capture: Path, rows: list[list[Case]], runs: int) -> dict[Case, Stage]:
    """Return the tuples and the median CPU seconds of each case; all run in turn."""
    every = [case for row in rows for case in row]
    programs = {case: case.program for case in every}
    found: dict[Case, list[Stage]] = {case: [] for case in every}
    for turn in range(runs + 1):
        for case in every:
            stage = run(capture, programs[case])
            if turn:  # The first turn compiles.
                found[case].append(stage)
    return {
        case: Stage(stages[0].tuples, statistics.median(each.cpu_s for each in stages))
        for case, stages in found.items()
    }


def main() -> None:
    """Print a table for a fixed slide, and one for a fixed range."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--packets", type=int, default=4_000_000)
    parser.add_argument("--runs", type=int, default=RUNS)
    arguments = parser.parse_args()
    capture = trace(arguments.packets)
    warm(capture)
    for is_slide_fixed in (True, False):
        fixed = "slide of 1 s" if is_slide_fixed else f"range of {RANGE_S} s"
        print(f"\n| {fixed}, grouped by |", *(f"r/s = {each} |" for each in OVERLAPS))
        print(f"| --- |{' ---: |' * len(OVERLAPS)}")
        rows = cases(is_slide_fixed=is_slide_fixed)
        stages = measured(capture, rows, arguments.runs)
        for row in rows:
            figures = [stages[case] for case in row]
            cells = (f"{each.cpu_s:.2f} s, {each.tuples:,} |" for each in figures)
            print(f"| {row[0].keys or 'nothing'} |", *cells, flush=True)


if __name__ == "__main__":
    main()
