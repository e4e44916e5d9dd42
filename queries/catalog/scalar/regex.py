r"""Regular expressions over hostile bytes: RE2, as Arrow offers it, in time linear in the text.

A backtracking matcher takes hours for one payload that its sender fits to the expression, and
`.*x.*y` needs no nesting for that. RE2 has no look-around and no references to groups; both are
refused when the query is compiled.

Texts and expressions are bytes: ``\xff`` is a byte, letters are those of ASCII, ``.`` matches a
line end too, and ``$`` is the end of the text. Every level calls the functions here, so that the
meaning is the same.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_WHOLE = b"gscope_whole"
_PIECE = re.compile(
    rb"""
      \\Q.*?(?:\\E|\Z)          # literal text
    | \\.                       # an escape
    | \[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]   # a class
    | (?P<group>\()(?!\?)       # a group without a name
    """,
    re.DOTALL | re.VERBOSE,
)


# What nearly all expressions consist of: letters, escapes, classes without unusual ranges, one
# repetition of each, and groups that are not nested.
_LETTER = rb"[A-Za-z0-9 _/:@,;=<>&%#~\"'!\t\r\n]"
_ESCAPE = rb"\\[!-/:-@\[-`{-~dDsSwWtrn]"
_CLASS = rb"\[\^?(?:a-z|A-Z|0-9|%b|[.]|%b)+\]" % (_LETTER, _ESCAPE)
_TERM = rb"(?:%b|%b|%b|[.])(?:[*+?]\??)?|[$^|]" % (_LETTER, _ESCAPE, _CLASS)
_USUAL = re.compile(rb"(?:%b|\((?:\?:)?(?:%b)*\)(?:[*+?]\??)?)*+" % (_TERM, _TERM))
_MOST_USUAL_BYTES = 256


class RegexError(ValueError):
    """A text that is not a regular expression of RE2."""


def is_usual(pattern: bytes) -> bool:
    """Return whether a pattern is of the kind that RE2 always accepts, as nearly all are."""
    return len(pattern) <= _MOST_USUAL_BYTES and _USUAL.fullmatch(pattern) is not None


def check_regex(pattern: bytes) -> None:
    """Refuse a text that is not a regular expression.

    RE2 is asked only if necessary: Arrow, which has it, takes a tenth of a second to load.

    Raises:
        RegexError: RE2 refuses it.
    """
    if is_usual(pattern):
        return
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        # First as written, for the message.
        pc.match_substring_regex(_binary([b""]), pattern=pattern)
    except pa.ArrowInvalid as error:
        raise RegexError(str(error).removeprefix("Invalid regular expression: ")) from error
    find_all([b""], pattern)


def match_all(texts: Any, pattern: bytes) -> Any:
    """Return for each text of an Arrow array or sequence of bytes whether ``pattern`` matches."""
    import pyarrow.compute as pc

    return pc.match_substring_regex(_binary(texts), pattern=b"(?s)" + pattern)


def find_all(texts: Any, pattern: bytes) -> Any:
    """Return for each text the first part that ``pattern`` matches; NULL if it matches none.

    Raises:
        RegexError: RE2 refuses the pattern.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    array = _binary(texts)
    try:
        found = pc.extract_regex(array, pattern=_named(pattern))
    except pa.ArrowInvalid as error:
        raise RegexError(str(error).removeprefix("Invalid regular expression: ")) from error
    parts = pc.struct_field(found, _WHOLE.decode())
    return pc.if_else(found.is_valid(), parts, pa.scalar(None, pa.binary()))


def matches(text: bytes, pattern: bytes) -> bool:
    """Return whether ``pattern`` matches somewhere in ``text``."""
    return bool(match_all([text], pattern)[0].as_py())


def find(text: bytes, pattern: bytes) -> bytes | None:
    """Return the first part of ``text`` that ``pattern`` matches."""
    part: bytes | None = find_all([text], pattern)[0].as_py()
    return part


def _binary(texts: Any) -> Any:
    import pyarrow as pa

    return texts if isinstance(texts, pa.Array) else pa.array(texts, pa.binary())


@lru_cache(maxsize=256)
def _named(pattern: bytes) -> bytes:
    """Return the pattern as a named group, the only kind that captures, as Arrow requires."""

    def plain(found: re.Match[bytes]) -> bytes:
        return b"(?:" if found["group"] else found[0]

    return b"(?s)(?P<" + _WHOLE + b">" + _PIECE.sub(plain, pattern) + b")"
