"""The progress of a run: one line on standard error, if that is a terminal."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, nullcontext
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

    def aside(self) -> AbstractContextManager[None]:
        """Make space on the terminal while answers are written."""

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
    return ProgressLine(is_live=is_live, shares_terminal=sys.stdout.isatty())


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

    def aside(self) -> AbstractContextManager[None]:
        """Do nothing: the terminal is free."""
        return nullcontext()

    def close(self) -> None:
        """Do nothing."""


class ProgressLine:
    """A line that says what the run does now, how far it is and how fast.

    Args:
        is_live: whether packets come from devices.
        shares_terminal: whether answers go to the same terminal, so that the line must make space.
    """

    def __init__(self, *, is_live: bool, shares_terminal: bool) -> None:
        from rich.console import Console
        from rich.live import Live

        self._shares_terminal = shares_terminal
        self._notices = Notices()
        self._view = RunView(is_live=is_live, phase_since_s=time.monotonic())
        self._has_pager = False
        self._console = Console(stderr=True)
        # Anything else that is written to standard error appears above the line.
        self._live = Live(
            console=self._console,
            get_renderable=self._line,
            transient=True,
            refresh_per_second=_REDRAWN_HZ,
            redirect_stdout=False,
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
        self._notices.say(text)

    def on_pager_start(self) -> None:
        """Remove the line for good, and keep notices."""
        self._has_pager = True
        self._live.stop()
        self._notices.keep()

    def on_pager_end(self) -> None:
        """Print the notices that were kept."""
        self._notices.release()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Hide the line while answers are written."""
        if not self._shares_terminal or self._has_pager:
            yield
            return
        self._live.stop()
        try:
            yield
        finally:
            if not self._has_pager:
                self._live.start()

    def close(self) -> None:
        """Remove the line for good."""
        self._live.stop()

    def _line(self) -> Text:
        from rich.text import Text

        return Text(self.text, no_wrap=True, overflow="crop")
