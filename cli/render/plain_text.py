# ruff: noqa: RUF001 - characters that look alike are the point
"""Text for terminals of the locale C: a codec that writes every character in ASCII."""

from __future__ import annotations

import codecs
import os

NAME = "gscope-ascii"
"""Not ``ascii``: click would replace such a stream by one that writes UTF-8."""

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("─━╌═╸╺", "-"),
        **dict.fromkeys("│┃║", "|"),
        **dict.fromkeys("┌┬┐├┼┤└┴┘┏┳┓┡╇┩┣╋┫┗┻┛╭╮╰╯", "+"),
        **dict.fromkeys("‘’", "'"),
        **dict.fromkeys("“”", '"'),
        **dict.fromkeys("–—−‐", "-"),
        "…": "...",
        "→": "->",
        "←": "<-",
        "≤": "<=",
        "≥": ">=",
        "≠": "<>",
        "×": "x",
        "•": "*",
        "·": ".",
        "µ": "u",
        "\u00a0": " ",
    }
)
"""Characters of gscope's own texts and of rich's drawings; others are escaped."""


def is_wanted(encoding: str) -> bool:
    """Return whether a stream with ``encoding`` leads to a terminal that shows only ASCII.

    In the locale C, Python writes UTF-8 nevertheless, unless PYTHONIOENCODING names another encoding.
    """
    if codecs.lookup(encoding).name == "ascii":
        return True
    if os.environ.get("PYTHONIOENCODING"):
        return False
    variables = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    return next(filter(None, variables), "") in ("C", "POSIX")


def register() -> None:
    """Make the codec known to Python."""
    codecs.register(_found)


def plain(text: str) -> str:
    """Return ``text`` in ASCII: similar characters where there are some, escapes elsewhere."""
    if text.isascii():
        return text
    return text.translate(_PLAIN).encode("ascii", "backslashreplace").decode("ascii")


def _encode(text: str, errors: str = "strict") -> tuple[bytes, int]:  # noqa: ARG001
    return plain(text).encode("ascii"), len(text)


class _Encoder(codecs.IncrementalEncoder):
    def encode(self, input: str, final: bool = False) -> bytes:  # noqa: A002, ARG002
        """Return ``input`` in ASCII."""
        return _encode(input)[0]


def _found(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") != NAME:
        return None
    utf_8 = codecs.lookup("utf-8")
    return codecs.CodecInfo(
        name=NAME,
        encode=_encode,
        decode=utf_8.decode,
        incrementalencoder=_Encoder,
        incrementaldecoder=utf_8.incrementaldecoder,
    )
