"""What signals mean to the supervisor of a run."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.cli.supervisor import Supervisor

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The first of them closes the windows, a second leaves at once."""


@contextmanager
def heeded(supervisor: Supervisor) -> Iterator[None]:
    """Pass signals on to ``supervisor``: those that end a run, and SIGUSR1, which asks for counters.

    What is ignored on purpose, as ``nohup`` ignores SIGHUP, stays ignored.
    """
    handlers = {number: lambda n, _frame: supervisor.on_signal(n) for number in ENDING}
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
