"""Writes the ``run.json`` of a run while the run is active; ``records.py`` reads it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gscope.cli.rundir.records import MAX_RESTARTS_KEPT, ProcessRecord, RestartRecord
from gscope.queries.run_folder.layout import RUN_FILE
from gscope.queries.run_folder.whole_file import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.cli.rundir.records import RecordedState, RunRecord, RunState

    Listener = Callable[[RunRecord, RunRecord], None]
    """Called with the record before a change and after."""


class RunFile:
    """The record of a run that this process supervises; each change replaces the whole file.

    May be used from several threads. On a full disk the file is out of date, but the run goes on.

    Args:
        record: the first record, which is written immediately.
        clock: the time, in nanoseconds UTC.
    """

    def __init__(self, record: RunRecord, clock: Callable[[], int] = time.time_ns) -> None:
        self.record = record
        self._clock = clock
        self._lock = threading.Lock()
        self._listeners: list[Listener] = []
        self.change()

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` at every change from now on, in the thread that makes it."""
        self._listeners.append(listener)

    def change(self, **fields: Any) -> None:
        """Change fields of the record, see ``RunRecord``."""
        with self._lock:
            before, self.record = (
                self.record,
                replace(self.record, **fields, changed_ns=self._clock()),
            )
            after = self.record
            self._write()
        for listener in self._listeners:
            listener(before, after)

    def enter(self, state: RunState, failure: str | None = None) -> None:
        """Change the state of the run; at its end no process is left.

        Args:
            state: the new state.
            failure: the sentence that the run failed with; None if it did not.
        """
        if state == self.record.state and failure == self.record.failure:
            return
        processes = self.record.processes
        if state in ("ended", "failed"):
            processes = {n: replace(p, pid=None, state=state) for n, p in processes.items()}
        self.change(state=state, failure=failure, processes=processes)

    def on_process(self, name: str, state: RecordedState, pid: int | None = None) -> None:
        """Change the state of a process; one that ended or failed has no process id.

        Args:
            name: ``capture`` or ``job``.
            state: the new state.
            pid: its process id; None: unchanged.
        """
        now = self._process(name)
        gone = state in ("ended", "failed", "restarting")
        self._set(name, replace(now, state=state, pid=None if gone else pid or now.pid))

    def on_restart(self, name: str, reason: str) -> None:
        """Note that the process ``name`` ended for ``reason`` and will be restarted."""
        now = self._process(name)
        restarts = (*now.restarts, RestartRecord(self._clock(), reason))
        self._set(
            name,
            ProcessRecord(
                None, "restarting", restarts[-MAX_RESTARTS_KEPT:], now.restarts_total + 1
            ),
        )

    def drop(self, name: str) -> None:
        """Delete the process ``name``, which the run does not need."""
        processes = {other: p for other, p in self.record.processes.items() if other != name}
        self.change(processes=processes)

    def _process(self, name: str) -> ProcessRecord:
        return self.record.processes.get(name, ProcessRecord())

    def _set(self, name: str, process: ProcessRecord) -> None:
        self.change(processes={**self.record.processes, name: process})

    def _write(self) -> None:
        try:
            replace_file(self.record.path / RUN_FILE, self.record.to_json())
        except OSError:
            return
