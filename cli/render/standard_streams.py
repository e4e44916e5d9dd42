"""Standard input, output and error, in whatever state the command was started."""

from __future__ import annotations

import codecs
import io
import locale
import os
import sys

from gscope.cli.render.plain_text import plain_ascii

_ASCII = ("ANSI_X3.4-1968", "US-ASCII", "646")
"""How systems name ASCII."""


def settle_streams() -> None:
    """Open all three, and let output accept any character, with escapes for what it cannot show.

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
    # In the locale C, Python writes UTF-8 all the same, which such a terminal cannot show.
    is_ascii = locale.getencoding() in _ASCII
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            is_plain = is_ascii or codecs.lookup(stream.encoding).name == "ascii"
            encoding = plain_ascii() if is_plain else None
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
