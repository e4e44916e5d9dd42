"""Remedies for windows in the spellings of other languages, and for windows in the wrong place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gscope.queries.gsql.intervals import read_interval_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lark import Token

_EXAMPLE = "[RANGE '1 min' SLIDE '10 sec']"
_EXAMPLES = {"RANGE": _EXAMPLE, "SLICES": "[SLICES '12 sec', '3 sec']"}
_WINDOW = re.compile(r"[\[(]\s*(?:RANGE|SLICES)\s+[^\s\])]", re.IGNORECASE)
_WORDS = {
    "SLIDE": "RANGE says how long a window is, and comes first: write "
    f"{_EXAMPLE}; without SLIDE windows follow one another",
    "ROWS": "rows with equal times have no order, so a number of them would hold others in each "
    "run; write RANGE over a column that numbers them: [RANGE 100 ON n]",
    "SESSION": "to end a group after a pause write GROUP BY time/30 AS tb, srcIP "
    "CLOSING_WHEN count(*) = 0",
    **dict.fromkeys(
        ("TUMBLE", "TUMBLING", "HOP", "HOPPING", "SLIDING", "LAST", "SIZE", "EVERY"),
        f"write {_EXAMPLE}; without SLIDE windows tumble",
    ),
}
_OPENING = frozenset({"RANGE", "SLICES"})
_SLIDES = frozenset({"ADVANCE", "EVERY", "HOP", "STEP"})
_LENGTHS = frozenset({"INTEGER", "FLOAT", "STRING", "INTERVAL", "PARAMETER", "DEFINITION"})


def window_word(word: str, expected: frozenset[str]) -> str:
    """Return the remedy for a word of other languages in a window, "" for any other.

    Args:
        word: in capital letters.
        expected: the terminals that the grammar allows in its place.
    """
    if word in _SLIDES and "SLIDE" in expected:
        return f"write SLIDE instead of {word}: {_EXAMPLE}"
    return _WORDS.get(word, "") if expected >= _OPENING else ""


def window_remedy(
    token: Token, expected: frozenset[str], before: Sequence[Token], text: str
) -> str:
    """Return the remedy for an unexpected token in or near a window, "" for any other.

    Args:
        token: the unexpected token.
        expected: the terminals that the grammar allows in its place.
        before: the tokens before it.
        text: the whole text.
    """
    if expected >= _OPENING:
        return window_word(token.upper(), expected) or f"write {_EXAMPLE}"
    is_window = _WINDOW.match(text, token.start_pos or 0) is not None
    if "LSQB" in expected and "AND" not in expected:
        return _without_brackets(token, before, is_window=is_window)
    is_predicate = [one.type for one in before[-2:]] == ["LSQB", "NAME"]  # srcIP [RANGE 60]
    is_length = before and before[-1].upper() in _OPENING and token.type in _LENGTHS
    if is_window or (is_predicate and is_length):
        return f"a window follows the input: FROM TCP {_EXAMPLE} WHERE …"
    return _inside(token, expected, before)


def _without_brackets(token: Token, before: Sequence[Token], *, is_window: bool) -> str:
    """Return the remedy for an unexpected token where a window may open."""
    word, last = token.upper(), before[-1].upper()
    if is_window or word in _OPENING or (last in _OPENING and token.type in _LENGTHS):
        return f"put the window in square brackets: FROM TCP {_EXAMPLE}"
    return _WORDS.get(last if word == "(" else word, "")


def _inside(token: Token, expected: frozenset[str], before: Sequence[Token]) -> str:
    """Return the remedy for an unexpected token in the brackets of a window."""
    opening = next((one.type for one in reversed(before[-8:]) if one.type in _OPENING), None)
    if opening is None:
        return ""
    length = f"{before[-1]} {token}"
    if token.type == "NAME" and read_interval_ns(length) is not None:
        return f"put a length with its unit in quotes: '{length}'"
    if token.type == "COMMA" and "SLIDE" in expected:
        return f"write {_EXAMPLE}, without a comma"
    if before[-1].upper() in {*_OPENING, "SLIDE"} and "STRING" in expected:
        return "a length is a number above 0, or one with a unit: 18, '18 sec', '5 min'"
    return f"write {_EXAMPLES[opening]}" if {"ON", "RSQB"} <= expected else ""
