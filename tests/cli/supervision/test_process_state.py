"""The state machine of a process: every pair of states, and the paths that processes take."""

from __future__ import annotations

import itertools
import signal
from typing import TYPE_CHECKING, cast

import pytest

from gscope.cli.rundir.record_file import RunFile
from gscope.cli.rundir.records import RunRecord
from gscope.cli.supervision.managed_process import ManagedProcess
from gscope.cli.supervision.process_state import TRANSITIONS, Lifecycle, ProcessState
from gscope.cli.supervision.restart_policy import RestartPolicy

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.supervision.child_process import ChildProcess

LEGAL = {
    "STARTING": "RUNNING INTERRUPTED BACKOFF EXITED FATAL",
    "RUNNING": "STOPPING FINISHED BACKOFF EXITED FATAL",
    "INTERRUPTED": "STOPPING BACKOFF EXITED FATAL",
    "STOPPING": "BACKOFF EXITED FATAL",
    "FINISHED": "EXITED",
    "BACKOFF": "STARTING FINISHED EXITED FATAL",
    "EXITED": "",
    "FATAL": "",
}


def in_state(state: ProcessState) -> Lifecycle:
    """Return a lifecycle that has reached ``state`` by the shortest legal path."""
    paths = [[ProcessState.STARTING]]
    while paths[0][-1] is not state:
        path = paths.pop(0)
        paths += [[*path, after] for after in TRANSITIONS[path[-1]] if after not in path]
    lifecycle = Lifecycle("job")
    for each in paths[0][1:]:
        lifecycle.enter(each)
    return lifecycle


def test_the_table_holds_every_state() -> None:
    assert set(TRANSITIONS) == set(ProcessState) == {ProcessState[name] for name in LEGAL}


@pytest.mark.parametrize(
    ("before", "after"),
    list(itertools.product(ProcessState, repeat=2)),
    ids=lambda state: state.name,
)
def test_only_legal_transitions_change_the_state(before: ProcessState, after: ProcessState) -> None:
    lifecycle = in_state(before)
    if after.name in LEGAL[before.name].split():
        lifecycle.enter(after)
        assert lifecycle.state is after
    else:
        expected = f"illegal transition of job: {before.name} to {after.name}"
        with pytest.raises(RuntimeError, match=expected):
            lifecycle.enter(after)
        assert lifecycle.state is before


def test_a_process_is_up_or_restarted_or_over() -> None:
    for state in ProcessState:
        assert state.is_up + state.is_over + (state is ProcessState.BACKOFF) == 1, state
        assert state.is_up or not state.is_working


class _Process:
    pid = 42

    def __init__(self) -> None:
        self.signals: list[signal.Signals] = []

    def signal(self, number: signal.Signals) -> None:
        self.signals.append(number)

    def stop(self) -> None: ...


class _Managed(ManagedProcess):
    """A managed process without a child, restarted at most once."""

    def __init__(self, folder: Path) -> None:
        self.file = RunFile(RunRecord(folder, True, "run", 1))
        self.spawned: list[_Process] = []
        policy = RestartPolicy(first_s=0.0, budget=1)
        super().__init__("job", self._new, 60.0, self.file, policy)

    def _new(self) -> ChildProcess:
        self.spawned.append(_Process())
        return cast("ChildProcess", self.spawned[-1])

    @property
    def recorded(self) -> str:
        """The state in ``run.json``."""
        return self.file.record.processes["job"].state


@pytest.fixture
def managed(tmp_path: Path) -> _Managed:
    return _Managed(tmp_path)


def test_a_job_works_and_finishes(managed: _Managed) -> None:
    assert (managed.state, managed.recorded) == (ProcessState.STARTING, "starting")
    managed.on_working(None)
    assert (managed.state, managed.recorded) == (ProcessState.RUNNING, "running")
    managed.on_finished()
    assert (managed.state, managed.recorded) == (ProcessState.FINISHED, "ended")
    managed.stop()
    managed.stop()
    assert managed.state is ProcessState.EXITED


def test_a_process_that_fails_is_restarted_and_then_given_up(managed: _Managed) -> None:
    managed.on_working(None)
    assert managed.on_failure("died") == 0.0
    assert (managed.state, managed.recorded) == (ProcessState.BACKOFF, "restarting")
    dues = [managed.until_due_s]
    managed.restart()
    dues.append(managed.until_due_s)
    assert (managed.state, managed.has_worked) == (ProcessState.STARTING, True)
    assert dues == [0.0, None]
    assert managed.on_failure("died") is None
    managed.stop()
    assert managed.state is ProcessState.FATAL
    assert len(managed.spawned) == 2


def test_a_daemon_may_be_asked_to_end_its_input_before_it_works(managed: _Managed) -> None:
    managed.end_input(None)
    assert (managed.state, managed.recorded) == (ProcessState.INTERRUPTED, "starting")
    managed.on_working(None)
    assert (managed.state, managed.recorded) == (ProcessState.STOPPING, "running")
    assert managed.spawned[0].signals == [signal.SIGTERM]
    managed.end()
    assert (managed.state, managed.recorded) == (ProcessState.EXITED, "ended")


def test_a_second_report_that_it_works_is_an_error(managed: _Managed) -> None:
    managed.on_working(None)
    with pytest.raises(RuntimeError, match="RUNNING to RUNNING"):
        managed.on_working(None)
