"""The progress of a run: one line on standard error, if that is a terminal."""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import contextmanager, nullcontext
from enum import Enum
from typing import TYPE_CHECKING, Protocol

import click

from gscope.cli.render.progress_text import RunPhase, RunView, progress_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from rich.text import Text

    from gscope.queries.streams.process_events import CaptureProgress

_REDRAWN_HZ = 4


class RunObserver(Protocol):
    """An observer of the progress of a run, such as a line on the terminal."""

    def aside(self, *, is_message: bool = False) -> AbstractContextManager[None]:
        """Make space on the terminal while answers are written, or messages on standard error."""

    def on_rows(self) -> None:
        """Note, in the block of ``aside``, that rows were written."""

    def close(self) -> None:
        """Remove the progress for good."""

    def on_progress(self, progress: CaptureProgress) -> None:
        """Show how far the capture daemon is."""

    def on_phase(self, phase: RunPhase, detail: str = "") -> None:
        """Show that the run has entered another phase; ``detail`` says which part of it."""

    def on_epochs(self, lengths_ns: tuple[int, ...]) -> None:
        """Note how long the epochs are whose ends the run answers."""

    def on_notice(self, text: str) -> None:
        """Print a sentence that the user must see."""

    def on_pager_start(self) -> None:
        """Leave the terminal to a pager: show no progress any more, and keep notices."""

    def on_pager_end(self) -> None:
        """Print the notices that were kept."""


def run_observer(
    *, is_quiet: bool, has_progress: bool = True, is_live: bool = False
) -> RunObserver:
    """Return a progress line if standard error is a terminal, otherwise an observer without one."""
    if is_quiet or not has_progress or not sys.stderr.isatty():
        return NullProgress(is_quiet=is_quiet)
    return ProgressLine(is_live=is_live, destination=_destination())


class Destination(Enum):
    """Where answers on standard output go, as far as it concerns the terminal."""

    TERMINAL = "the terminal that shows the progress"
    PIPE = "a program that may write to that terminal"
    ELSEWHERE = "a file"


def _destination() -> Destination:
    if sys.stdout.isatty():
        return Destination.TERMINAL
    try:
        mode = os.fstat(sys.stdout.fileno()).st_mode
    except (OSError, ValueError):
        return Destination.ELSEWHERE
    is_pipe = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    return Destination.PIPE if is_pipe else Destination.ELSEWHERE


class Notices:
    """Sentences for the user, kept while a pager has the terminal.

    Args:
        is_quiet: whether to suppress them.
    """

    def __init__(self, *, is_quiet: bool = False) -> None:
        self._is_quiet = is_quiet
        self._kept: list[str] | None = None

    def say(self, text: str) -> None:
        """Print a sentence on a line of its own, or keep it."""
        if self._is_quiet:
            return
        if self._kept is not None:
            self._kept.append(text)
            return
        click.echo(f"gscope: {text}", err=True)

    def keep(self) -> None:
        """Keep further sentences if standard error is the terminal that the pager uses."""
        if sys.stderr.isatty():
            self._kept = []

    def release(self) -> None:
        """Print the sentences that were kept."""
        kept, self._kept = self._kept or [], None
        for text in kept:
            self.say(text)


class NullProgress:
    """An observer that shows no progress.

    Args:
        is_quiet: whether to suppress notices as well.
    """

    def __init__(self, *, is_quiet: bool = False) -> None:
        self._notices = Notices(is_quiet=is_quiet)

    def on_progress(self, progress: CaptureProgress) -> None:
        """Do nothing."""

    def on_phase(self, phase: RunPhase, detail: str = "") -> None:
        """Do nothing."""

    def on_epochs(self, lengths_ns: tuple[int, ...]) -> None:
        """Do nothing."""

    def on_notice(self, text: str) -> None:
        """Print the sentence on a line of its own."""
        self._notices.say(text)

    def on_pager_start(self) -> None:
        """Keep notices."""
        self._notices.keep()

    def on_pager_end(self) -> None:
        """Print the notices that were kept."""
        self._notices.release()

    def aside(self, *, is_message: bool = False) -> AbstractContextManager[None]:  # noqa: ARG002
        """Do nothing: the terminal is free."""
        return nullcontext()

    def on_rows(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class ProgressLine:
    """A line that says what the run does now, how far it is and how fast.

    Args:
        is_live: whether packets come from devices.
        destination: where answers go; the line makes space for those on the same terminal, and
            ends for good when a pipe gets rows.
    """

    def __init__(self, *, is_live: bool, destination: Destination) -> None:
        from rich.console import Console
        from rich.live import Live

        self._destination = destination
        self._notices = Notices()
        self._view = RunView(is_live=is_live, phase_since_s=time.monotonic())
        self._is_over = False
        self._console = Console(stderr=True)
        self._live = Live(
            console=self._console,
            get_renderable=self._line,
            transient=True,
            refresh_per_second=_REDRAWN_HZ,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    @property
    def text(self) -> str:
        """The line as it is now."""
        return progress_text(self._view, time.monotonic(), self._console.width - 1)

    def on_progress(self, progress: CaptureProgress) -> None:
        """Show how far the capture daemon is."""
        self._view.take(progress, time.monotonic())

    def on_phase(self, phase: RunPhase, detail: str = "") -> None:
        """Show another phase."""
        self._view.enter(phase, detail, time.monotonic())

    def on_epochs(self, lengths_ns: tuple[int, ...]) -> None:
        """Show when the next epoch ends."""
        self._view.epochs_ns = lengths_ns

    def on_notice(self, text: str) -> None:
        """Print the sentence on a line of its own above the progress."""
        with self.aside(is_message=True):
            self._notices.say(text)

    def on_pager_start(self) -> None:
        """Remove the line for good, and keep notices."""
        self.close()
        self._notices.keep()

    def on_pager_end(self) -> None:
        """Print the notices that were kept."""
        self._notices.release()

    @contextmanager
    def aside(self, *, is_message: bool = False) -> Iterator[None]:
        """Hide the line while answers or messages are written."""
        is_elsewhere = self._destination is Destination.ELSEWHERE and not is_message
        if is_elsewhere or self._is_over:
            yield
            return
        self._live.stop()
        try:
            yield
        finally:
            if not self._is_over:
                self._live.start()

    def on_rows(self) -> None:
        """End the line if the reader of a pipe may show the rows on the terminal."""
        if self._destination is Destination.PIPE:
            self.close()

    def close(self) -> None:
        """Remove the line for good."""
        self._is_over = True
        self._live.stop()

    def _line(self) -> Text:
        from rich.text import Text

        return Text(self.text, no_wrap=True, overflow="crop")
