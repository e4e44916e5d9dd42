"""The signals that the supervisor of a run handles."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gscope.cli.supervision.supervisor import Supervisor

ENDING = (signal.SIGINT, signal.SIGTERM)
"""The first of these closes all windows, a second one ends the run immediately.

SIGHUP closes the windows, too, but counts only as the first signal: when a terminal is closed, both
the terminal and the shell send one."""


@contextmanager
def signal_handlers(supervisor: Supervisor) -> Iterator[None]:
    """Pass signals on to ``supervisor``: those that end a run, and SIGUSR1 for counters.

    A signal that is ignored on entry, as ``nohup`` ignores SIGHUP, stays ignored.
    """
    terminals = [descriptor for descriptor in (0, 1, 2) if os.isatty(descriptor)]

    def on_hangup(number: int, _frame: object) -> None:
        _let_go(terminals)
        if not supervisor.outcome.signal:
            supervisor.on_signal(number)

    handlers: dict[signal.Signals, Callable[[int, object], None]] = {
        number: lambda n, _frame: supervisor.on_signal(n) for number in ENDING
    }
    handlers[signal.SIGHUP] = on_hangup
    handlers[signal.SIGUSR1] = lambda _n, _frame: supervisor.ask_counters()
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)


def _let_go(terminals: list[int]) -> None:
    """Discard further output to a terminal that is gone, where any write would fail."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in terminals:
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
