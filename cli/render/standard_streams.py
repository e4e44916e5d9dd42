"""Standard input, output and error, in whatever state the command was started."""

from __future__ import annotations

import io
import os
import sys


def settle_streams() -> None:
    """Open all three, and let standard output accept any character.

    A closed one would be None in Python, and the next file opened would get its descriptor: answers
    and messages would be written to that file. Writing to a standard output that was closed is an
    error, as in cat(1); it is harmless if nothing is written there, as with files of answers.
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
