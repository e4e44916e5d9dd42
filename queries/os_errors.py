"""Errors of the operating system as the last words of a message."""

from __future__ import annotations

import os


def os_reason(error: Exception) -> str:
    """Return why a system call failed, such as ``permission denied``, to end a message with.

    The text is looked up by the error's number, because Arrow raises ``OSError`` with the number
    set and several sentences of its own. An error without a number speaks for itself.
    """
    number = getattr(error, "errno", None) or 0
    text = os.strerror(number) if number > 0 else getattr(error, "strerror", None) or str(error)
    return f"{text[:1].lower()}{text[1:]}"
