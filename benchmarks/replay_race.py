"""The command of a benchmark that races programs over the same capture."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from benchmarks.installed import compile_modules
from benchmarks.measure import RUNS, chosen, race, run_once, table, write_csv
from benchmarks.trace import OUT, PACKETS, trace, warm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.measure import Contestant


def race_over_capture(
    description: str | None, contestants: Callable[[Path], Sequence[Contestant]], name: str
) -> None:
    """Parse the command line, race the contestants, and print and write their costs.

    Args:
        description: describes the benchmark in its help.
        contestants: returns the contestants for a capture.
        name: name of the CSV file in ``OUT``, without its extension.
    """
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    parser.add_argument("--packets", type=int, default=PACKETS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run only these contestants")
    arguments = parser.parse_args()
    capture = trace(arguments.packets)
    warm(capture)
    compile_modules()
    field = chosen(contestants(capture), arguments.only)
    for contestant in field:
        # Compilation and caching on first use are not part of the race.
        run_once(contestant)
    costs = race(field, arguments.runs)
    print(table(costs, arguments.packets))
    write_csv(costs, OUT / f"{name}.csv")
