"""Runs by name: the record ``run.json`` of each, and whether it is active.

A run is a folder ``run-<NAME>`` in the work dir. Its supervisor holds the folder's lock until it
ends and keeps ``run.json`` up to date (see ``record_file.py``). A run whose lock is free was
killed, and is called stale.
"""

from __future__ import annotations

import json
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from gscope.cli.rundir.lock import is_held
from gscope.errors import GscopeError, UsageError
from gscope.queries.did_you_mean import suggestion
from gscope.queries.run_folder.layout import RUN_FILE
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCHEMA = 1
FOLDER_PREFIX = "run-"
ENDED_FOLDER = "ended"
"""The folder of what stays of runs that have ended, in the work dir; see ``ended.py``."""

MAX_RESTARTS_KEPT = 100

RunState = Literal["starting", "running", "stopping", "ended", "failed", "recorded"]
RecordedState = Literal["starting", "running", "restarting", "ended", "failed"]


@dataclass(frozen=True, slots=True)
class RestartRecord:
    """A restart of a process.

    Attributes:
        at_ns: the time, in nanoseconds UTC.
        reason: why the process ended, one phrase.
    """

    at_ns: int
    reason: str


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """A process of a run.

    Attributes:
        pid: its process id; None while it does not run.
        state: its state, as ``gscope status`` shows it.
        restarts: the latest ``MAX_RESTARTS_KEPT`` restarts, oldest first.
        restarts_total: the number of restarts since the run began.
    """

    pid: int | None = None
    state: RecordedState = "starting"
    restarts: tuple[RestartRecord, ...] = ()
    restarts_total: int = 0


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The record of a run.

    Attributes:
        path: the folder of the run.
        is_alive: whether its supervisor runs.
        name: its name, unique in the work dir.
        pid: process id of the supervisor.
        state: the last state that the supervisor wrote.
        began_ns: when the run was first started, in nanoseconds UTC; resuming does not change it.
        changed_ns: when ``run.json`` was last written, in nanoseconds UTC.
        command: the command line after ``gscope``.
        queries: the names of the results.
        interfaces: the names of the interfaces.
        is_live: whether the interfaces are devices.
        folder: the folder of the output files; None: answers go to standard output.
        metrics: the URL at which the run serves its metrics; None if it serves none.
        failure: the sentence that the run failed with; None if it did not.
        processes: the processes ``capture`` and ``job``, as far as they exist.
    """

    path: Path
    is_alive: bool
    name: str
    pid: int
    state: RunState = "starting"
    began_ns: int = 0
    changed_ns: int = 0
    command: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    is_live: bool = False
    folder: str | None = None
    metrics: str | None = None
    failure: str | None = None
    processes: dict[str, ProcessRecord] = field(default_factory=dict)

    @property
    def standing(self) -> str:
        """The state in one word; ``stale`` if the run was killed before it could record its end."""
        is_over = self.state in ("ended", "failed", "recorded")
        return self.state if self.is_alive or is_over else "stale"

    @property
    def is_resumable(self) -> bool:
        """Whether the run has ended but its folder, or a recording, holds unanswered packets."""
        return self.is_live and not self.is_alive

    @property
    def resumption(self) -> str:
        """The command that resumes the run, without its queries and options."""
        return resumption(self.name, self.command)

    def to_json(self) -> str:
        """Return the text of ``run.json``."""
        value = {"schema": SCHEMA, **asdict(self)}
        del value["path"], value["is_alive"]
        return json.dumps(value, indent=1)


def resumption(name: str, command: Sequence[str]) -> str:
    """Return the command that resumes a run, without its queries and options.

    Args:
        name: the name of the run.
        command: the command line after ``gscope`` that started it.
    """
    return f"gscope {'relay' if command and command[0] == 'relay' else 'run'} --run {name}"


def read_run(path: Path) -> RunRecord | None:
    """Return the run in ``path``; None for a link, or a folder without a valid record."""
    if path.is_symlink():
        return None
    # Before the file is read: in the other order, a run that ends meanwhile would look killed.
    is_alive = is_held(path)
    try:
        return _record(path, is_alive, json.loads((path / RUN_FILE).read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def find_runs(work_dir: Path) -> tuple[RunRecord, ...]:
    """Return all runs in ``work_dir``, active and stale, in the order in which they began."""
    records = [read_run(path) for path in work_dir.glob(f"{FOLDER_PREFIX}*")]
    return tuple(sorted((r for r in records if r is not None), key=lambda r: (r.began_ns, r.name)))


def choose_counted(work_dir: Path, name: str) -> RunRecord:
    """Return the run called ``name``, or what stays of it if it has ended.

    Raises:
        GscopeError: there is no run, and none has left its counters (exit code 1).
        UsageError: no run has that name.
    """
    runs = find_runs(work_dir)
    ended = find_runs(work_dir / ENDED_FOLDER)
    if not runs and not ended:
        return choose_run(work_dir, name)
    names = {run.name for run in runs}
    return _named((*runs, *(run for run in ended if run.name not in names)), name)


def choose_run(work_dir: Path, name: str | None) -> RunRecord:
    """Return the run called ``name``; without a name the only active run, or else the only run.

    Raises:
        GscopeError: the work dir has no run (exit code 1).
        UsageError: no run has that name, or a name is needed to choose among several.
    """
    runs = find_runs(work_dir)
    if not runs:
        what = "no run" if name is None else f"no run {name!r}"
        message = f"{what} is active (looked in {work_dir})"
        raise GscopeError(message)
    if name is not None:
        return _named(runs, name)
    living = [run for run in runs if run.is_alive]
    candidates = living or list(runs)
    if len(candidates) > 1:
        message = f"there are {len(candidates)} runs; name one with --run: {_listed(candidates)}"
        raise UsageError(message)
    return candidates[0]


def _named(runs: Sequence[RunRecord], name: str) -> RunRecord:
    for run in runs:
        if run.name == name:
            return run
    hint = suggestion(name, [run.name for run in runs], f"available: {_listed(runs)}")
    message = f"unknown run {name!r}; {hint}"
    raise UsageError(message)


def _listed(runs: Sequence[RunRecord]) -> str:
    return ", ".join(run.name if run.is_alive else f"{run.name} ({run.standing})" for run in runs)


def _record(path: Path, is_alive: bool, value: dict[str, Any]) -> RunRecord:
    """Return the record that ``run.json`` holds.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: the record is invalid.
    """
    if value.pop("schema") != SCHEMA or path.name != FOLDER_PREFIX + value["name"]:
        raise ValueError(path)
    if value["state"] not in get_args(RunState):
        raise ValueError(value["state"])
    for name in ("command", "queries", "interfaces"):
        value[name] = tuple(map(str, value[name]))
    for name in ("pid", "began_ns", "changed_ns"):
        value[name] = int(value[name])
    value["processes"] = {
        name: ProcessRecord(
            **{**each, "restarts": tuple(RestartRecord(**r) for r in each["restarts"])}
        )
        for name, each in value["processes"].items()
    }
    return RunRecord(path=path, is_alive=is_alive, **value)
