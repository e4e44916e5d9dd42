"""How failures of processes are reported: their names, and the errors that end a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.cli.events import CAPTURE, JOB
from gscope.errors import CaptureError, EngineError
from gscope.queries.os_errors import ended_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.errors import GscopeError

TITLES = {CAPTURE: "the capture daemon", JOB: "the HFTA job"}

_KINDS: dict[str, Callable[[str], GscopeError]] = {CAPTURE: CaptureError, JOB: EngineError}
_ENDED = "ended with"


def how_ended(code: int) -> str:
    """Return how a process ended, by its exit code, as a phrase."""
    return f"{_ENDED} {ended_with(code)}"


def failure_of(source: str, message: str, last_words: str = "") -> GscopeError:
    """Return the error that ends the run.

    Args:
        source: the process or thread that failed.
        message: one sentence.
        last_words: the last line that the process wrote to standard error, which is the only hint
            when it ended without an event; "" for none.
    """
    detail = f": {last_words}" if last_words and _ENDED in message else ""
    return _KINDS.get(source, EngineError)(message + detail)
