# ruff: noqa: RUF001 - characters that look alike are the point
"""Text for terminals of the locale C: a codec that writes every character in ASCII."""

from __future__ import annotations

import codecs

_NAME = "gscope_ascii"
"""Not ``ascii``: click would replace such a stream by one that writes UTF-8."""

_ESCAPES = "backslashreplace"

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
"""Characters of gscope's own texts and of rich's drawings."""


def plain_ascii() -> str:
    """Register the codec, and return its name."""
    codecs.register(_found)
    return _NAME


def plain(text: str, errors: str = "strict") -> bytes:
    """Return ``text`` in ASCII.

    Args:
        text: any text.
        errors: what becomes of other characters, as in ``str.encode``; with ``backslashreplace``,
            those that have a similar character in ASCII become this. Tables, which ask in another
            way what can be shown, then escape such characters in values, and columns stay aligned.
    """
    if errors == _ESCAPES and not text.isascii():
        text = text.translate(_PLAIN)
    return text.encode("ascii", errors)


def _encode(text: str, errors: str = "strict") -> tuple[bytes, int]:
    return plain(text, errors), len(text)


class _Encoder(codecs.IncrementalEncoder):
    def encode(self, input: str, final: bool = False) -> bytes:  # noqa: A002, ARG002
        """Return ``input`` in ASCII."""
        return plain(input, self.errors)


def _found(name: str) -> codecs.CodecInfo | None:
    if name != _NAME:
        return None
    plain_codec = codecs.lookup("ascii")
    return codecs.CodecInfo(
        name=_NAME,
        encode=_encode,
        decode=plain_codec.decode,
        incrementalencoder=_Encoder,
        incrementaldecoder=plain_codec.incrementaldecoder,
    )
