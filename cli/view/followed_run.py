"""The view of a run in the background: its files are read, and nothing of the run changes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gscope.cli.delivery.checkpoint import DeliveryCheckpoint
from gscope.cli.render.outcome import Outcome
from gscope.cli.render.progress_text import RunPhase
from gscope.cli.rundir.records import read_run
from gscope.cli.view.accounts import account_of
from gscope.cli.view.answer_files import answer_files
from gscope.cli.view.model import ViewModel
from gscope.cli.view.rows.columns import answer_of
from gscope.cli.view.terminal.screen import open_terminal
from gscope.cli.view.viewer import Viewer
from gscope.engine.sinks.columns import readable_schema
from gscope.errors import GscopeError, UsageError
from gscope.queries.os_errors import os_reason
from gscope.queries.plan.program_file import read_program
from gscope.queries.plan.row_order import visible
from gscope.queries.run_folder.layout import (
    CAPTURE_STATISTICS_FILE,
    JOB_STATISTICS_FILE,
    PROGRAM_FILE,
)
from gscope.queries.run_folder.snapshot import read_snapshot
from gscope.queries.streams.loss_reasons import IncompleteEpochs
from gscope.queries.streams.process_events import CaptureProgress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.cli.config.time_style import TimeStyle
    from gscope.cli.rundir.records import RunRecord
    from gscope.cli.view.answer_files import AnswerFiles
    from gscope.cli.view.rows.columns import Answer

_WAIT_S = 0.2


def view_run(run: RunRecord, style: TimeStyle) -> None:
    """Show the answers of a run until the user leaves.

    Raises:
        GscopeError: the run writes no files, or they cannot be read.
    """
    followed = FollowedRun(run, style)
    viewer = Viewer(followed.model, open_terminal, None, followed.look, followed.model.note)
    viewer.start()
    try:
        while viewer.is_shown:
            viewer.wait(_WAIT_S)
    except KeyboardInterrupt:
        pass
    finally:
        viewer.leave()


class FollowedRun:
    """The model of a run in the background, brought up to date by ``look``.

    Args:
        run: the run.
        style: how to show times.

    Attributes:
        model: what there is to see.

    Raises:
        GscopeError: the run has not begun to answer.
        UsageError: the run writes no files.
    """

    def __init__(self, run: RunRecord, style: TimeStyle) -> None:
        if run.folder is None:
            message = (
                f"run {run.name} writes no files; start it with -w DIR to view it from another"
                " terminal"
            )
            raise UsageError(message)
        sink = DeliveryCheckpoint(run.path).position.sink
        kind = sink.get("kind")
        if not isinstance(kind, str):
            message = f"run {run.name} has not begun to answer"
            raise GscopeError(message)
        program = read_program(run.path / PROGRAM_FILE)
        self.model = ViewModel(run.name, is_live=run.is_live)
        self._run = run
        self._outcome = Outcome()
        self._files: dict[str, AnswerFiles] = {}
        self._failed: set[str] = set()
        self._written_ns: int | None = None
        self._answers: dict[str, Answer] = {}
        for query, _ in program.results:
            self._answers[query] = answer_of(program, query, style)
            self.model.begin(self._answers[query])
            schema = readable_schema(visible(program.schema(query)))
            self._files[query] = answer_files(
                *(Path(run.folder), kind, query, schema),
                is_partitioned=sink.get("partitions") is not None,
            )
        self.model.follow(self._outcome)
        self.model.on_phase(RunPhase.CAPTURING)

    def look(self) -> None:
        """Read the rows and counters that were written since the last look."""
        if self.model.state.has_ended:
            return
        # What is written before the end of the run is seen is in the files then.
        latest = read_run(self._run.path)
        for query, files in self._files.items():
            try:
                for table in files.rows():
                    if table is None:
                        self.model.begin(self._answers[query])
                    else:
                        self.model.add(query, table)
            except (OSError, pa.ArrowException) as error:
                self._note_once(query, error)
        statistics = read_snapshot(self._run.path / CAPTURE_STATISTICS_FILE)
        if statistics is not None:
            self._count_losses(read_snapshot(self._run.path / JOB_STATISTICS_FILE) or {})
            self.model.state.account = account_of(statistics, self._outcome)
            if statistics["written_ns"] != self._written_ns:
                self._written_ns = statistics["written_ns"]
                self.model.on_progress(_progress(statistics))
        if latest is None or not latest.is_alive:
            standing = "has ended" if latest is None else f"is {latest.standing}"
            self.model.note(f"run {self._run.name} {standing}")
            self.model.on_end()
        self.model.changed()

    def _note_once(self, query: str, error: Exception) -> None:
        if query not in self._failed:
            self._failed.add(query)
            self.model.note(f"cannot read the answers of {query}: {os_reason(error)}")

    def _count_losses(self, job: Mapping[str, Any]) -> None:
        """Take incomplete epochs and late rows from the counters of the job."""
        incomplete: list[IncompleteEpochs] = []
        for operator in job.get("operators", ()):
            name = operator["name"]
            if counts := operator.get("incomplete_epochs_total"):
                self._outcome.incomplete_epochs[name] = dict(counts)
            incomplete += [
                IncompleteEpochs(name, **fields) for fields in operator.get("incomplete_epochs", ())
            ]
            if late := operator.get("late_tuples_total"):
                self._outcome.late_tuples[name] = late
            if shed := operator.get("shed_tuples_total"):
                self._outcome.shed_tuples[name] = shed
        self._outcome.incomplete = incomplete


def _progress(statistics: Mapping[str, Any]) -> CaptureProgress:
    """Return how far the capture is, from its counters."""
    interfaces = statistics.get("interfaces", ())
    packets = sum(int(each.get("received_packets") or 0) for each in interfaces)
    dropped = sum(int(each.get("dropped_packets") or 0) for each in interfaces)
    return CaptureProgress(packets, 0, None, time.time_ns(), dropped)
