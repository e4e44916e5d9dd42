"""What a window costs the job, row by row of its answers, while the overlap of windows grows.

    python -m benchmarks.windows.assembly [--groups 5000] [--rows 10000] [--windows 100]

Slices of ``--rows`` tuples of ``--groups`` sources are assembled into windows and answered into
Parquet files, without packets and without Spark: in one step, and in steps of two windows, whose
states go through files. The slide is fixed; the range is 1 to 1,000 slides. Filling the first
window is not timed. CPU seconds are those of the process; the least of three runs counts.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from gscope.engine.spark.tasks.window_answers import AnswerPlan, WindowAnswers
from gscope.engine.storage.parquet_files import FileWriter
from gscope.engine.windows.assembly import Assembly, WindowEnd
from gscope.engine.windows.pieces import NUMBER
from gscope.engine.windows.saved import SavedWindow, WindowStates
from gscope.engine.windows.timeline import Timeline
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.window_node import WindowNode

SLIDE = 10
OVERLAPS = (1, 10, 100, 1000)
QUERIES = {
    "count, sum": "count(*) AS c, sum(len) AS s",
    "min, max": "min(len) AS a, max(len) AS b",
    "none of HAVING": "count(*) AS c",
    "count_distinct": "count_distinct(destPort) AS c",
}


class CountedAnswers(WindowAnswers):
    """Answers whose rows before HAVING are counted."""

    rows = 0

    def add(self, end: WindowEnd, keys: pa.Table) -> None:
        """Add the end of a window."""
        self.rows += len(end.places)
        super().add(end, keys)


def plan_of(columns: str, overlap: int, having: str) -> AnswerPlan:
    """Return the plan of a query over windows of ``overlap`` slides."""
    text = (
        f"SELECT window_end, srcIP, {columns} FROM TCP [RANGE {overlap * SLIDE} SLIDE {SLIDE}]"
        f" GROUP BY srcIP{having}"
    )
    (node,) = compile_queries([QueryText(text, "q")], CompileContext(("a",))).program.nodes
    assert isinstance(node, WindowNode)
    return AnswerPlan.of(node)


def slices(plan: AnswerPlan, first: int, end: int, args: argparse.Namespace) -> pa.Table:
    """Return the tuples between two ends of windows, in no order of groups."""
    chosen = np.random.default_rng(first)
    count = (end - first) * args.rows
    times = np.repeat(np.arange(first, end) * SLIDE, args.rows)
    edges = plan.node.windows.slicing.edges
    columns: dict[str, pa.Array] = {
        NUMBER: pa.array(sum((times + shift) // period for period, shift in edges))
    }
    for name in plan.key_names:
        numbers = chosen.integers(0, args.groups if name == "srcIP" else 20, count)
        columns[name] = pa.array(numbers)
        if name == "srcIP":
            words = np.stack([np.zeros_like(numbers), numbers], axis=1).astype(">u8")
            columns[name] = pa.Array.from_buffers(
                pa.binary(16), count, [None, pa.py_buffer(words.tobytes())]
            )
    for each in plan.layout.partials:
        columns[each.name] = pa.array(chosen.integers(1, 1500, count))
    return pa.table(columns)


def measure(plan: AnswerPlan, steps: int, folder: Path, args: argparse.Namespace) -> str:
    """Answer the windows in ``steps`` steps, and return what they cost."""
    node = plan.node
    timeline = Timeline(node.window, node.windows.slicing)
    full = node.window.overlap
    ends = [0, full, *(full + args.windows * (n + 1) // steps for n in range(steps))]
    states = WindowStates(folder, plan.layout)
    saved: SavedWindow | None = None
    spent, answers = 0.0, 0
    for step, (first, end) in enumerate(pairwise(ends)):
        rows = slices(plan, first, end, args)
        if step == 1:
            spent, answers = 0.0, 0
        began = time.process_time()
        before = None
        if saved is not None:
            before = states.read(f"{step - 1}", len(saved.ids))
        writer = FileWriter(folder, f"{step}.parquet")
        assembly = Assembly(
            timeline,
            plan.layout,
            plan.key_names,
            rows,
            before,
            states.opened,
            f"{step}-",
            plan.counted,
        )
        collected = CountedAnswers(plan, writer.write)
        answer = partial(collected.add, keys=assembly.keys)
        saved = assembly.run(timeline.slicing.number(end * SLIDE), answer)
        collected.flush(assembly.keys)
        writer.close()
        answers += collected.rows
        if saved is not None:
            states.write(f"{step}", saved)
        spent += time.process_time() - began
        # The memory of the first window is not released at the expense of the next step.
        del assembly, collected, answer, before, rows
    return f"{spent / answers * 1e9:6.0f}"


def main() -> None:
    """Print the nanoseconds of CPU that a row of the answers costs before HAVING."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=5_000)
    parser.add_argument("--rows", type=int, default=10_000, help="tuples of a slide")
    parser.add_argument("--windows", type=int, default=100)
    args = parser.parse_args()
    print("ns of CPU for a row:", *(f"r/s={overlap}" for overlap in OVERLAPS))
    for name, columns in QUERIES.items():
        having = " HAVING count(*) > 1000000000" if "HAVING" in name else ""
        for steps in (1, args.windows // 2):
            costs = []
            for overlap in OVERLAPS:
                plan = plan_of(columns, overlap, having)
                runs = []
                for _ in range(3):
                    with TemporaryDirectory() as folder:
                        runs.append(measure(plan, steps, Path(folder), args))
                costs.append(min(runs))
            print(f"{name}, {steps} steps:", *costs, flush=True)


if __name__ == "__main__":
    main()
