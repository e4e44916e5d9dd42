"""Standard input, output and error, in whatever state the command was started."""

from __future__ import annotations

import io
import os
import sys


def settle_streams() -> None:
    """Have all three open, and let standard output take any character.

    One that is closed would be None in Python, and its descriptor would go to the next file that is opened: answers
    and messages would be written there. Who writes to a standard output that was closed is told so, as by cat(1);
    it is no loss where nothing is written to it, as with files of answers.
    """
    for descriptor, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)
    # mypy takes these for never None; Python's documentation says when they are.
    streams: list[object] = [sys.stdin, sys.stdout, sys.stderr]
    if streams[0] is None:
        sys.stdin = os.fdopen(0, closefd=False)
    if streams[1] is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if streams[2] is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
