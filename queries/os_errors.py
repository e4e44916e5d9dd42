"""Errors of the operating system, and ends of processes, as the last words of a message."""

from __future__ import annotations

import os
import signal


def os_reason(error: Exception) -> str:
    """Return why a system call failed, such as ``permission denied``, to end a message with.

    The text is looked up by the error's number, because Arrow raises ``OSError`` with the number
    set and several sentences of its own. An error without a number speaks for itself.
    """
    number = getattr(error, "errno", None) or 0
    text = os.strerror(number) if number > 0 else getattr(error, "strerror", None) or str(error)
    return f"{text[:1].lower()}{text[1:]}"


def ended_with(code: int) -> str:
    """Return with what a process ended, by its exit code: ``code 1``, or ``signal SIGKILL``."""
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
