"""What failures of processes are called, and which error they are to the user."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from gscope.cli.events import CAPTURE, JOB
from gscope.errors import CaptureError, EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.errors import GscopeError

TITLES = {CAPTURE: "the capture daemon", JOB: "the HFTA job"}

_KINDS: dict[str, Callable[[str], GscopeError]] = {CAPTURE: CaptureError, JOB: EngineError}
_ENDED = "ended with"


def how_ended(code: int) -> str:
    """How a process ended, by its exit code."""
    if code < 0:
        return f"{_ENDED} signal {signal.Signals(-code).name}"
    return f"{_ENDED} code {code}"


def failure_of(source: str, message: str, last_words: str = "") -> GscopeError:
    """The error that ends the run.

    Args:
        source: of the failure, a process or a thread.
        message: one sentence.
        last_words: what the process wrote last; all that is known when it ended without saying why.
    """
    detail = f": {last_words}" if last_words and _ENDED in message else ""
    return _KINDS.get(source, EngineError)(message + detail)
