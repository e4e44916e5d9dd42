"""The progress of a run, on standard error."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

import click

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from rich.progress import ProgressColumn

    from gscope.queries.streams.process_events import CaptureProgress


class RunObserver(Protocol):
    """An observer of the progress of a run, such as a progress bar."""

    def aside(self) -> AbstractContextManager[None]:
        """Make space on the terminal while answers are written."""

    def close(self) -> None:
        """Remove the progress for good."""

    def on_progress(self, progress: CaptureProgress) -> None:
        """Show how far the capture daemon is."""

    def on_phase(self, text: str) -> None:
        """Show that the run has entered another phase."""

    def on_notice(self, text: str) -> None:
        """Print a sentence that the user must see."""


def run_observer(*, is_quiet: bool, is_live: bool = False) -> RunObserver:
    """Return a progress bar if standard error is a terminal, otherwise an observer without one."""
    if is_quiet or not sys.stderr.isatty():
        return NullProgress(is_quiet=is_quiet)
    return (LiveLine if is_live else ProgressBar)(shares_terminal=sys.stdout.isatty())


class NullProgress:
    """An observer that shows no progress.

    Args:
        is_quiet: whether to suppress notices as well.
    """

    def __init__(self, *, is_quiet: bool = False) -> None:
        self._is_quiet = is_quiet

    def on_progress(self, progress: CaptureProgress) -> None:
        """Do nothing."""

    def on_phase(self, text: str) -> None:
        """Do nothing."""

    def on_notice(self, text: str) -> None:
        """Print the sentence on a line of its own."""
        if not self._is_quiet:
            click.echo(f"gscope: {text}", err=True)

    def aside(self) -> AbstractContextManager[None]:
        """Do nothing: the terminal is free."""
        return nullcontext()

    def close(self) -> None:
        """Do nothing."""


class ProgressBar:
    """A line with packets per second, percent of the input, trace time, and the phase.

    Args:
        shares_terminal: whether answers go to the same terminal, so that the line must make space.
    """

    def __init__(self, *, shares_terminal: bool) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._shares_terminal = shares_terminal
        self._began: float | None = None
        self._progress = Progress(
            *self._columns(),
            console=Console(stderr=True),
            transient=True,
            refresh_per_second=4,
        )
        self._task = self._progress.add_task("starting", total=None, rate="", clock="", drops="")
        self._progress.start()

    def _columns(self) -> list[ProgressColumn]:
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn

        return [
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[clock]}"),
        ]

    def on_progress(self, progress: CaptureProgress) -> None:
        """Show how far the capture daemon is."""
        now = time.monotonic()
        if self._began is None:
            self._began = now
            self._progress.update(self._task, description="reading")
        seconds = now - self._began
        rate = f"{progress.packets / seconds:,.0f} packets/s" if seconds > 0 else ""
        self._progress.update(
            self._task,
            total=progress.size_bytes,
            completed=progress.input_bytes,
            rate=rate,
            clock=_clock(progress.clock_ns),
        )

    def on_phase(self, text: str) -> None:
        """Show another phase, whose duration is unknown."""
        self._progress.update(self._task, description=text)

    def on_notice(self, text: str) -> None:
        """Print the sentence on a line of its own above the bar."""
        self._progress.console.print(f"gscope: {text}", markup=False, highlight=False)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Hide the bar while answers are written."""
        if not self._shares_terminal:
            yield
            return
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()

    def close(self) -> None:
        """Remove the bar for good."""
        self._progress.stop()


class LiveLine(ProgressBar):
    """A line with recent packets per second, packets dropped by the kernel, and the time."""

    def __init__(self, *, shares_terminal: bool) -> None:
        self._told: tuple[float, int] | None = None
        super().__init__(shares_terminal=shares_terminal)

    def on_progress(self, progress: CaptureProgress) -> None:
        """Show how the capture goes."""
        now, packets = time.monotonic(), progress.packets
        if self._told is not None and now > self._told[0]:
            rate = (packets - self._told[1]) / (now - self._told[0])
            self._progress.update(self._task, rate=f"{rate:,.0f} packets/s")
        self._told = now, packets
        self._progress.update(
            self._task,
            description="capturing",
            drops=f"{progress.dropped:,} dropped",
            clock=_clock(progress.clock_ns),
        )

    def _columns(self) -> list[ProgressColumn]:
        from rich.progress import SpinnerColumn, TextColumn

        names = ("description", "fields[rate]", "fields[drops]", "fields[clock]")
        return [SpinnerColumn(), *(TextColumn(f"{{task.{name}}}") for name in names)]


def _clock(nanoseconds: int) -> str:
    """Return trace time to the second, UTC; "" if it is outside the calendar."""
    try:
        return f"{datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return ""
