"""``--watch`` of ``status`` and ``explain``: the view of a run.

It is redrawn when its counters change.
"""

from __future__ import annotations

import select
import sys
import termios
import time
import tty
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from gscope.cli.rundir.records import read_run
from gscope.queries.run_folder.layout import CAPTURE_STATISTICS_FILE, JOB_STATISTICS_FILE, RUN_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rich.console import RenderableType

    from gscope.cli.rundir.records import RunRecord

LOOK_S = 0.25
"""Seconds between two looks for changes."""

REDRAW_S = 1.0
"""Seconds after which the view is redrawn without a change: it shows times that pass."""

View = Callable[["RunRecord", int], "Iterable[RenderableType]"]
"""Returns the parts of the view of a run at a time in ns, from top to bottom."""

_QUIT = ("q", "Q", "\x04")
_FILES = (RUN_FILE, CAPTURE_STATISTICS_FILE, JOB_STATISTICS_FILE)


def watch(run: RunRecord, view: View) -> int:
    """Show ``run`` until q, Ctrl-C or its end; return the exit code."""
    try:
        return _follow(run, view)
    except KeyboardInterrupt:
        return 0


def _follow(run: RunRecord, view: View) -> int:
    console = Console(highlight=False)
    path, shown, drawn_s = run.path, _changes(run.path), time.monotonic()
    with (
        _keys() as pressed,
        Live(_drawn(run, view), console=console, screen=True, auto_refresh=False) as live,
    ):
        live.refresh()
        while pressed(LOOK_S) not in _QUIT:
            latest = read_run(path)
            if latest is None or not latest.is_alive:
                break
            changes = _changes(path)
            if changes != shown or time.monotonic() - drawn_s >= REDRAW_S:
                run, shown, drawn_s = latest, changes, time.monotonic()
                live.update(_drawn(run, view), refresh=True)
        else:
            return 0
    console.print(f"run {run.name} {'has ended' if latest is None else latest.standing}")
    return 0


def _drawn(run: RunRecord, view: View) -> Group:
    # At the top: a view that is too long for the terminal is truncated at the bottom.
    hint = Text("q quits", "dim")
    return Group(hint, *view(run, time.time_ns()))


def _changes(path: Path) -> tuple[int, ...]:
    """Return when each file was last written; 0 for a missing one."""
    times = []
    for name in _FILES:
        try:
            times.append((path / name).stat().st_mtime_ns)
        except OSError:
            times.append(0)
    return tuple(times)


@contextmanager
def _keys() -> Iterator[_Keys]:
    """Read single keys without echo from a terminal on standard input; without one, only wait."""
    if not sys.stdin.isatty():
        yield _Keys(None)
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield _Keys(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class _Keys:
    """A reader of single keys, or a timer if its descriptor is None."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def __call__(self, timeout_s: float) -> str:
        """Return the key pressed within ``timeout_s``; "" for none."""
        waited = [] if self._descriptor is None else [self._descriptor]
        ready, _, _ = select.select(waited, [], [], timeout_s)
        return sys.stdin.read(1) if ready else ""
