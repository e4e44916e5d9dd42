"""How a run goes, shown on standard error while it lasts."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import click

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from rich.progress import ProgressColumn


class Watcher(Protocol):
    """Who is told how the run goes, for a progress bar."""

    def aside(self) -> AbstractContextManager[None]:
        """Make room on the terminal while answers are written."""

    def close(self) -> None:
        """Nothing more will come."""

    def on_progress(self, fields: dict[str, Any]) -> None:
        """The capture daemon got further; see its ``progress`` event."""

    def on_phase(self, text: str) -> None:
        """The run entered another phase."""

    def on_notice(self, text: str) -> None:
        """Something happened that the user must know, one sentence."""


def watcher(*, is_quiet: bool, is_live: bool = False) -> Watcher:
    """Progress if standard error is a terminal, otherwise one that says nothing."""
    if is_quiet or not sys.stderr.isatty():
        return Silence(is_quiet=is_quiet)
    return (LiveLine if is_live else ProgressBar)(shares_terminal=sys.stdout.isatty())


class Silence:
    """Shows no progress.

    Args:
        is_quiet: nor anything else.
    """

    def __init__(self, *, is_quiet: bool = False) -> None:
        self._is_quiet = is_quiet

    def on_progress(self, fields: dict[str, Any]) -> None:
        """Nothing to show."""

    def on_phase(self, text: str) -> None:
        """Nothing to show."""

    def on_notice(self, text: str) -> None:
        """Tell it, on a line of its own."""
        if not self._is_quiet:
            click.echo(f"gscope: {text}", err=True)

    def aside(self) -> AbstractContextManager[None]:
        """Nothing is in the way."""
        return nullcontext()

    def close(self) -> None:
        """Nothing to clear."""


class ProgressBar:
    """Packets a second, percent of the input, the trace's time, and the phase.

    Args:
        shares_terminal: answers go to the same terminal, so that the bar must step aside for them.
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

    def on_progress(self, fields: dict[str, Any]) -> None:
        """Show how far the capture daemon is."""
        now = time.monotonic()
        if self._began is None:
            self._began = now
            self._progress.update(self._task, description="reading")
        seconds = now - self._began
        rate = f"{fields['packets'] / seconds:,.0f} packets/s" if seconds > 0 else ""
        self._progress.update(
            self._task,
            total=fields["size_bytes"],
            completed=fields["input_bytes"],
            rate=rate,
            clock=_clock(fields["clock_ns"]),
        )

    def on_phase(self, text: str) -> None:
        """Show another phase; what it lasts is not known."""
        self._progress.update(self._task, description=text)

    def on_notice(self, text: str) -> None:
        """Tell it, on a line of its own above the bar."""
        self._progress.console.print(f"gscope: {text}", markup=False, highlight=False)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Take the bar off the terminal while answers are written."""
        if not self._shares_terminal:
            yield
            return
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()

    def close(self) -> None:
        """Take the bar off the terminal for good."""
        self._progress.stop()


class LiveLine(ProgressBar):
    """Packets a second of late, packets dropped by the kernel, and the time that is reached."""

    def __init__(self, *, shares_terminal: bool) -> None:
        self._told: tuple[float, int] | None = None
        super().__init__(shares_terminal=shares_terminal)

    def on_progress(self, fields: dict[str, Any]) -> None:
        """Show how the capture goes."""
        now, packets = time.monotonic(), int(fields["packets"])
        if self._told is not None and now > self._told[0]:
            rate = (packets - self._told[1]) / (now - self._told[0])
            self._progress.update(self._task, rate=f"{rate:,.0f} packets/s")
        self._told = now, packets
        self._progress.update(
            self._task,
            description="capturing",
            drops=f"{fields['dropped']:,} dropped",
            clock=_clock(fields["clock_ns"]),
        )

    def _columns(self) -> list[ProgressColumn]:
        from rich.progress import SpinnerColumn, TextColumn

        names = ("description", "fields[rate]", "fields[drops]", "fields[clock]")
        return [SpinnerColumn(), *(TextColumn(f"{{task.{name}}}") for name in names)]


def _clock(nanoseconds: int) -> str:
    """Trace time to the second, UTC; "" if it is outside the calendar."""
    try:
        return f"{datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return ""
