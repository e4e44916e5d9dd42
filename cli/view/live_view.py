"""The view of a run in this process: where its answers go, and what observes it."""

from __future__ import annotations

import os
import queue
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from gscope.cli.view.accounts import account_of, final_account
from gscope.cli.view.model import ViewModel
from gscope.cli.view.rows.columns import answer_of
from gscope.cli.view.rows.history import MOST_ROWS
from gscope.cli.view.rows.raw_rows import RawRows
from gscope.cli.view.terminal.screen import open_terminal
from gscope.cli.view.viewer import Viewer
from gscope.queries.run_folder.layout import CAPTURE_STATISTICS_FILE
from gscope.queries.run_folder.snapshot import read_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from gscope.cli.config.time_style import TimeStyle
    from gscope.cli.render.outcome import Outcome
    from gscope.cli.render.progress import RunObserver
    from gscope.cli.render.progress_text import RunPhase
    from gscope.cli.view.model import WantedPackets
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.process_events import CaptureProgress

    SaveRow = Callable[[str, pa.Table, Path], str]

_WAIT_S = 0.2


class LiveView:
    """The view of one run; its screen appears once all inputs are open.

    Until then, and after the view, the terminal is that of another observer.

    Args:
        observer: the observer before and after the view.
        title: what is viewed.
        run_dir: the folder of the run.
        is_live: whether packets come from devices.

    Attributes:
        observer: observes the run, for the view and for the other observer.
        raw_rows: sees the rows before they become readable; of a live run, whose packets cannot be
            read again, it keeps the latest table alone.
    """

    def __init__(self, observer: RunObserver, title: str, run_dir: Path, *, is_live: bool) -> None:
        self._run_dir = run_dir
        self._model = ViewModel(title, is_live=is_live)
        self._viewer = Viewer(self._model, open_terminal, _interrupt, self._look, self._notify)
        self.observer = ViewObserver(observer, self._model, self._viewer)
        self.raw_rows = RawRows(0 if is_live else MOST_ROWS)
        self._outcome: Outcome | None = None
        self._sink: ViewSink | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        try:
            self._viewer.leave()
        finally:
            self.observer.release()

    def sink(self, program: Program, style: TimeStyle, outcome: Outcome) -> ViewSink:
        """Return where answers go.

        Args:
            program: the program whose answers they are.
            style: how to show times.
            outcome: what becomes known of losses while the run goes on.
        """
        self._outcome = outcome
        self._model.follow(outcome)
        for query, _ in program.results:
            self._model.begin(answer_of(program, query, style))
        self._sink = ViewSink(self._model, self.observer.show)
        return self._sink

    def stay(self, has_signal: Callable[[], bool], save: SaveRow | None) -> None:
        """Show the answers of a run that has ended until the user leaves, or a signal comes.

        Args:
            has_signal: whether a signal has come.
            save: saves the packets of a row that the user asks for, and returns what became of
                them; None if the packets cannot be read again.
        """
        if self._outcome is not None and self._sink is not None:
            links = self._model.state.account.links
            self._model.state.account = final_account(self._outcome, self._sink.rows, links)
        self._model.can_save = save is not None
        self._model.on_end()
        while self._viewer.is_shown and not has_signal():
            try:
                wanted = self._model.wanted_packets.get(timeout=_WAIT_S)
            except queue.Empty:
                continue
            if save is not None:
                self._model.note(
                    f"saving packets of the row in {wanted.path}: reading the captures"
                )
                self._notify(self._saved(wanted, save))

    def _saved(self, wanted: WantedPackets, save: SaveRow) -> str:
        row = self.raw_rows.row(wanted.query, wanted.row)
        if row is None:
            return "the row is not kept any more"
        return save(wanted.query, row, wanted.path)

    def _notify(self, text: str) -> None:
        self.observer.on_notice(text)

    def _look(self) -> None:
        if self._model.state.has_ended or self._outcome is None:
            return
        statistics = read_snapshot(self._run_dir / CAPTURE_STATISTICS_FILE) or {}
        self._model.state.account = account_of(statistics, self._outcome)


class ViewSink:
    """Takes the answers of a run for the view, whose thread draws them when it is time to.

    Args:
        model: takes the rows.
        show: shows the screen.

    Attributes:
        rows: the number of rows, by query.
    """

    def __init__(self, model: ViewModel, show: Callable[[], None]) -> None:
        self._model = model
        self._show = show
        self.rows = {history.answer.query: 0 for history in model.histories}

    def begin(self, query: str, schema: pa.Schema) -> None:  # noqa: ARG002  # the program names them
        """Show the screen: all inputs are open."""
        self._show()

    def write(self, query: str, table: pa.Table) -> None:
        """Take rows."""
        self.rows[query] += table.num_rows
        self._model.add(query, table)

    def settle(self, *, is_last: bool) -> dict[str, Any]:  # noqa: ARG002  # nothing is held back
        """Let the next picture show the rows; nothing else becomes of them."""
        self._model.changed()
        return {}

    def publish(self) -> None:
        """Do nothing: ``settle`` has shown the rows."""

    def close(self, *, is_complete: bool) -> None:
        """Do nothing: the screen stays until the user leaves it."""


class ViewObserver:
    """Observes a run for its view, and for the observer that has the terminal before and after it.

    Args:
        other: that observer.
        model: takes what is observed.
        viewer: has the terminal meanwhile.
    """

    def __init__(self, other: RunObserver, model: ViewModel, viewer: Viewer) -> None:
        self._other = other
        self._model = model
        self._viewer = viewer
        self._has_terminal = False

    def show(self) -> None:
        """Leave the terminal to the view."""
        if not self._has_terminal:
            self._has_terminal = True
            self._other.on_pager_start()
            self._viewer.start()

    def release(self) -> None:
        """Let the other observer print what it has kept: the view is gone."""
        if self._has_terminal:
            self._has_terminal = False
            self._other.on_pager_end()

    @contextmanager
    def aside(self, *, is_message: bool = False) -> Iterator[None]:
        """Make space for rows or messages; what they overwrite is drawn again."""
        with self._other.aside(is_message=is_message):
            yield
        if is_message:
            self._viewer.redraw()

    def on_rows(self) -> None:
        """Do nothing: rows are on the screen."""

    def close(self) -> None:
        """Remove the progress of the other observer."""
        self._other.close()

    def on_progress(self, progress: CaptureProgress) -> None:
        """Show how far the capture daemon is."""
        self._model.on_progress(progress)
        self._other.on_progress(progress)

    def on_phase(self, phase: RunPhase, detail: str = "") -> None:
        """Show what the run does."""
        self._model.on_phase(phase, detail)
        self._other.on_phase(phase, detail)

    def on_epochs(self, lengths_ns: tuple[int, ...]) -> None:
        """Show when the next epoch ends."""
        self._model.state.view.epochs_ns = lengths_ns
        self._other.on_epochs(lengths_ns)

    def on_notice(self, text: str) -> None:
        """Show a sentence; the other observer prints it when the view is gone."""
        self._model.note(text)
        self._other.on_notice(text)

    def on_pager_start(self) -> None:
        """Do nothing: a view has no pager."""

    def on_pager_end(self) -> None:
        """Do nothing: a view has no pager."""


def _interrupt() -> None:
    """End the run as Ctrl-C does."""
    os.kill(os.getpid(), signal.SIGINT)
