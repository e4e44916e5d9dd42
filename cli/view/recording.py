"""Recording of what is seen: the rows of epochs that pass the filter, in order, in a file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.cli.view.rows.history import Frozen
from gscope.cli.view.rows.shown_rows import ShownRows
from gscope.engine.sinks.text import csv_header, write_csv, write_ndjson
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.cli.view.choices import AnswerChoice
    from gscope.cli.view.model import ViewModel
    from gscope.cli.view.rows.history import Epoch, History

_NDJSON = (".ndjson", ".jsonl", ".json")


class Recording:
    """A file that rows of one answer are written to, epoch by epoch.

    The epoch on the screen is the first. Others are written when the next one has begun, or the run
    has ended: then all of their rows are known. Filter and order are those of the beginning.

    Args:
        path: the file, which must not exist; NDJSON if its name says so, otherwise CSV.
        model: has the rows.
        history: the answer.
        choice: its filter and order.
        shown: the epoch on the screen; None if there is none yet.

    Attributes:
        path: the file.
        query: the answer.
        rows: the number of rows written.
        missed: the number of epochs whose rows had been let go before they could be written.

    Raises:
        OSError: the file exists, or cannot be written.
    """

    def __init__(
        self,
        path: Path,
        model: ViewModel,
        history: History,
        choice: AnswerChoice,
        shown: Epoch | None,
    ) -> None:
        self.path = path
        self.query = history.answer.query
        self.rows = self.missed = 0
        self._model = model
        self._history = history
        self._filter, self._sorting = choice.filter, choice.sorting
        self._next = 0 if shown is None else shown.number
        self._file = path.open("xb")
        self._is_ndjson = path.suffix.lower() in _NDJSON
        if not self._is_ndjson:
            self._file.write(csv_header([column.name for column in history.answer.columns]))

    @property
    def summary(self) -> str:
        """What has been recorded, as a sentence."""
        missed = f"; {self.missed:,} epochs came too fast" if self.missed else ""
        return f"recorded {self.rows:,} rows of {self.query} in {self.path}{missed}"

    def advance(self, *, is_last: bool) -> None:
        """Write the epochs that are complete.

        Args:
            is_last: whether the latest epoch is complete, too.

        Raises:
            OSError: the file cannot be written.
        """
        while (epoch := self._due(is_last=is_last)) is not None:
            self._write(epoch)
            self._next = epoch.epoch.number + 1

    def close(self) -> None:
        """Write what is complete, and close the file.

        Raises:
            OSError: the file cannot be written.
        """
        try:
            self.advance(is_last=True)
        finally:
            self._file.close()

    def abandon(self) -> None:
        """Close a file that cannot be written any more."""
        with suppress(OSError):
            self._file.close()

    def _due(self, *, is_last: bool) -> Frozen | None:
        """Return the next epoch that is complete and kept; count those that are not kept."""
        with self._model.lock:
            latest = self._history.latest
            end = -1 if latest is None else latest.number + is_last
            while self._next < end:
                epoch = self._history.find(self._next)
                if epoch is not None and (table := epoch.table) is not None:
                    return Frozen(epoch, table)
                self.missed += 1
                self._next += 1
        return None

    def _write(self, epoch: Frozen) -> None:
        shown = ShownRows()
        shown.choose(self._history.answer, epoch, self._filter, self._sorting)
        rows = shown.all(self._history.answer)
        (write_ndjson if self._is_ndjson else write_csv)(rows, self._file)
        self._file.flush()
        self.rows += rows.num_rows


class Recorder:
    """Starts and stops recordings, one at a time.

    Args:
        model: has the rows.
        notify: notifies the user of what has been recorded.
    """

    def __init__(self, model: ViewModel, notify: Callable[[str], None]) -> None:
        self._model = model
        self._notify = notify
        self.current: Recording | None = None

    def start(self, path: str, history: History, choice: AnswerChoice, shown: Epoch | None) -> str:
        """Start a recording; return why it does not start, or "" if it does."""
        try:
            recording = Recording(Path(path).expanduser(), self._model, history, choice, shown)
        except OSError as error:
            return f"cannot record there: {os_reason(error)}"
        self.current = recording
        return ""

    def advance(self) -> None:
        """Write the epochs that are complete; end a recording that fails."""
        if self.current is None:
            return
        try:
            self.current.advance(is_last=self._model.state.has_ended)
        except OSError as error:
            self._fail(error)

    def stop(self) -> None:
        """End the recording, and note what it has recorded."""
        if self.current is None:
            return
        try:
            self.current.close()
        except OSError as error:
            self._fail(error)
            return
        recording, self.current = self.current, None
        self._notify(recording.summary)

    def _fail(self, error: OSError) -> None:
        recording, self.current = self.current, None
        if recording is not None:
            recording.abandon()
            reason = os_reason(error)
            self._notify(f"recording has ended: {recording.path}: {reason}; {recording.summary}")
