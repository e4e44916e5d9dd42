"""Folds beside the tasks of a step.

Each reads results that are there, and a failure ends the step.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING, cast
from unittest import mock

import pytest

from gscope.engine.spark.step_folds import Staged, StepFolds
from gscope.engine.spark.task_planner import StageResult, StageRun
from gscope.engine.spark.tasks.state_runner import FoldResult
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import RunningNode

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.engine.operators.base import Work
    from gscope.queries.plan.program import HftaNode

TEXT = """
DEFINE { query_name 'y'; }
SELECT tb, srcIP, count(*) as c FROM TCP GROUP BY time/10 as tb, srcIP;
DEFINE { query_name 'over_query'; }
SELECT tb, srcIP, sum(c) as c, running_sum(c) as n FROM y GROUP BY tb, srcIP CLOSING_WHEN sum(c) = 0;
DEFINE { query_name 'over_packets'; }
SELECT tb, srcIP, running_count(*) as n FROM UDP GROUP BY time/10 as tb, srcIP CLOSING_WHEN count(*) = 0
"""  # noqa: E501
FOLDER = Path("answers")


def _works() -> list[Work]:
    """The works of a step, as far as folds look at them."""
    nodes = compile_queries([QueryText(TEXT, "q")], CompileContext(("a",))).program.nodes
    works = []
    for node in nodes:
        upstream = ("y",) if node.query == "over_query" else ()
        works.append(_work(node, upstream))
    return works


def _work(node: HftaNode, upstream: tuple[str, ...] = (), rows: int = 1) -> Work:
    taken = mock.Mock(trim=None, upstream=upstream)
    facts = {"node": node, "inputs": (taken,), "upstream": upstream, "rows": rows}
    return cast("Work", mock.Mock(**facts, reads_rows=True))


def _place(query: str) -> Staged:
    return (None, FOLDER) if query == "over_packets" else (f"{query}.parquet", FOLDER / query)


def _folds(fold: Callable[[Work, StageRun, Path], FoldResult]) -> StepFolds:
    return StepFolds(_works(), _place, fold, 2)


def test_a_fold_starts_when_its_input_is_there() -> None:
    folded = []

    def fold(work: Work, run: StageRun, folder: Path) -> FoldResult:
        assert isinstance(work.node, RunningNode)
        folded.append((work.node.query, set(run.results), folder))
        return FoldResult((), None)

    run, folds = StageRun(), _folds(fold)
    assert folds.start(run)
    folds.finish(run)
    run.results["y"] = StageResult(FOLDER / "y", None)
    assert folds.start(run)
    folds.finish(run)
    assert not folds.start(run)
    folds.close()
    assert folded == [
        ("over_packets", set(), FOLDER),
        ("over_query", {"over_packets", "y"}, FOLDER / "over_query"),
    ]
    assert set(folds.results) == {"over_packets", "over_query"}
    # Answers without rows have no files, so they are no output.
    assert run.results["over_query"].path is None


def test_the_largest_fold_starts_first() -> None:
    node = next(work.node for work in _works() if work.node.query == "over_packets")
    begun = []

    def fold(work: Work, run: StageRun, folder: Path) -> FoldResult:
        begun.append((work.rows, folder, len(run.results)))
        return FoldResult((), None)

    run = StageRun()
    folds = StepFolds([_work(node, rows=rows) for rows in (5, 9, 7)], _place, fold, 1)
    assert folds.start(run)
    folds.finish(run)
    folds.close()
    assert [rows for rows, *_ in begun] == [9, 7, 5]


def test_the_failure_of_a_fold_is_that_of_the_step() -> None:
    def fold(work: Work, run: StageRun, folder: Path) -> FoldResult:
        place = f"{work.node.query} in {folder} ({len(run.results)})"
        raise OSError(errno.ENOSPC, place)

    run, folds = StageRun(), _folds(fold)
    assert folds.start(run)
    with pytest.raises(OSError, match="over_packets in answers"):
        folds.finish(run)
    folds.close()
