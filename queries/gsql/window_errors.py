"""Remedies for windows in the spellings of other languages, and for windows in the wrong place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gscope.queries.gsql.intervals import read_interval_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lark import Token

_EXAMPLE = "[RANGE '1 min' SLIDE '10 sec']"
_WINDOW = re.compile(r"\[\s*(?:RANGE|SLICES)\b", re.IGNORECASE)
_WORDS = {
    "ROWS": "rows with equal times have no order, so a number of them would hold others in each "
    "run; write RANGE over a column that numbers them: [RANGE 100 ON n]",
    "SESSION": "to end a group after a pause write GROUP BY time/30 AS tb, srcIP "
    "CLOSING_WHEN count(*) = 0",
    **dict.fromkeys(
        ("TUMBLE", "TUMBLING", "HOP", "HOPPING", "SLIDING", "SLIDE", "LAST", "SIZE", "EVERY"),
        f"write {_EXAMPLE}; without SLIDE windows tumble",
    ),
}
_OPENING = frozenset({"RANGE", "SLICES"})


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
        return _WORDS.get(token.upper(), f"write {_EXAMPLE}")
    if token.type == "LSQB" and "NAME" not in expected:
        is_window = _WINDOW.match(text, token.start_pos or 0)
        return f"a window is behind the input: FROM TCP {_EXAMPLE} WHERE …" if is_window else ""
    last = before[-1].upper() if before else ""
    if last in _OPENING and token.type in {"INTEGER", "STRING"} and "RSQB" not in expected:
        return f"put the window in brackets: FROM TCP {_EXAMPLE}"
    if not any(one.type in _OPENING for one in before[-8:]):
        return ""
    length = f"{last} {token}"
    if token.type == "NAME" and read_interval_ns(length) is not None:
        return f"put a length with its unit in quotes: '{before[-1]} {token}'"
    if token.type == "COMMA" and "SLIDE" in expected:
        return f"write {_EXAMPLE}, without a comma"
    if last in {*_OPENING, "SLIDE"} and "STRING" in expected:
        return "a length is a number above 0, or one with a unit: 18, '18 sec', '5 min'"
    return ""
