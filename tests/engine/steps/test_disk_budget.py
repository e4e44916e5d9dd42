"""Answers and carried rows stay within the job's disk budget."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.engine.operators.windowed import windowed

from gscope.engine.steps.disk_budget import JobDiskBudget
from gscope.engine.steps.steps import Carry, Evaluation, Steps
from gscope.engine.storage.commits import Commit, CommitLog, Output
from gscope.engine.storage.parquet_files import State
from gscope.errors import EngineError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.windows.columns import SLICE
from gscope.queries.plan.windows.window import SlidingWindow
from gscope.queries.streams.messages import Batch, Extent

if TYPE_CHECKING:
    from pathlib import Path

QUERIES = """
DEFINE { query_name 'flows'; } SELECT tb, srcIP, count(*) AS c FROM IP GROUP BY time/10 AS tb, srcIP;
DEFINE { query_name 'talkers'; } SELECT tb2, count(*) AS n FROM flows GROUP BY tb/6 AS tb2
"""  # noqa: E501


def steps_with_carry(*rows: int) -> Steps:
    """Return steps that carry these numbers of rows, of ten bytes each, until a minute ends."""
    program = compile_queries((QueryText(QUERIES, "test"),), CompileContext(("eth0",))).program
    steps = Steps(program)
    extents = (Extent("tb", 6, 6),)
    for number, count in enumerate(rows, 1):
        batch = Batch("flows", number, f"carry-{number}", count, 10 * count, extents)
        steps.on_evaluated(Evaluation(carries=(Carry("talkers", 0, batch),)))
    return steps


def test_a_live_job_sheds_the_oldest_carried_rows_with_a_count(tmp_path: Path) -> None:
    steps = steps_with_carry(5, 7, 11)
    room = JobDiskBudget(CommitLog(tmp_path), 120, is_live=True)
    assert room.fit(steps) == {"talkers": 12}
    assert steps.carried() == {"carry-3"}
    assert room.fit(steps) == {}


def test_a_replay_says_that_carried_rows_do_not_fit(tmp_path: Path) -> None:
    room = JobDiskBudget(CommitLog(tmp_path), 120, is_live=False)
    with pytest.raises(EngineError, match=r"talkers keeps 230 bytes .* limit is 120"):
        room.fit(steps_with_carry(5, 7, 11))


def steps_with_slices() -> Steps:
    """Return steps of a window that keeps 40 bytes of slices, and one over it that carries 30."""
    steps = Steps(windowed(SlidingWindow(18, 15), SlidingWindow(60, 20)))
    slices = State("w", 1, "slices", 4, 40, (Extent(SLICE, 2, 5),), files=("live",))
    ends = (Extent("window_end", 30, 60),)
    rows = Batch("w", 1, "rows", 3, 30, ends)
    carries = (Carry("rows", 0, rows),)
    steps.on_evaluated(Evaluation(carries=carries, states=(("w", slices),)))
    port = steps.operators["rows"].sides[0].ports["w"]
    port.partially_read = frozenset({1})
    return steps


def test_slices_of_windows_are_shed_last_and_all_at_once(tmp_path: Path) -> None:
    steps = steps_with_slices()
    assert JobDiskBudget(CommitLog(tmp_path), 70, is_live=True).fit(steps) == {}
    assert JobDiskBudget(CommitLog(tmp_path), 40, is_live=True).fit(steps) == {"rows": 3}
    assert steps.carried() == {"slices"}
    assert JobDiskBudget(CommitLog(tmp_path), 39, is_live=True).fit(steps) == {"w": 4}
    assert steps.carried() == set()


def test_a_replay_says_which_query_keeps_most(tmp_path: Path) -> None:
    room = JobDiskBudget(CommitLog(tmp_path), 69, is_live=False)
    steps = steps_with_slices()
    with pytest.raises(
        EngineError, match=r"^w keeps 40 of 70 bytes for windows .* limit is 69.*E$"
    ):
        room.fit(steps)
    slices = steps.operators["w"].state
    assert slices is not None
    steps.operators["w"].state = replace(slices, size_bytes=29)
    with pytest.raises(EngineError, match=r"^rows keeps 30 of 59 bytes for windows"):
        JobDiskBudget(CommitLog(tmp_path), 58, is_live=False).fit(steps)


def test_the_job_waits_until_its_answers_are_taken(tmp_path: Path) -> None:
    commits = CommitLog(tmp_path)
    paths = []
    for step in range(3):
        output = Output("q", f"q/{step}.arrow", 1)
        path = commits.outputs / output.path
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
        commits.write(Commit(step, {}, (output,)))
        paths.append(path)
    looked = 0

    def take(_seconds: float) -> None:
        nonlocal looked
        looked += 1
        paths.pop(0).unlink()

    JobDiskBudget(commits, 150, is_live=True, pause=take).wait()
    assert looked == 1


def test_a_live_job_waits_while_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [1 << 20, 1 << 20, 1 << 30]

    class Usage:
        @property
        def free(self) -> int:
            return free[0]

    monkeypatch.setattr("gscope.engine.steps.disk_budget.shutil.disk_usage", lambda _: Usage())
    JobDiskBudget(CommitLog(tmp_path), 150, is_live=True, pause=lambda _: free.pop(0)).wait()
    assert free == [1 << 30]
    JobDiskBudget(CommitLog(tmp_path), 150, is_live=False).wait()
