"""Remedies for samples in the spellings of other languages.

These are USING SAMPLE 10%, SAMPLE 0.1, NOT SAMPLE.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lark import Token

_RATE = "the rate of a sample is an option of the run: --sample-rate 10%"
_BY = "SAMPLE BY srcIP names what packets are chosen by"
_SAMPLE = re.compile(r"\s+SAMPLE\b", re.IGNORECASE)
_NOT_SAMPLED = re.compile(r"\s+SAMPL", re.IGNORECASE)
_NUMBERS = frozenset({"INTEGER", "FLOAT", "LPAR"})


def using_sample(tokens: Sequence[Token], text: str) -> Token | None:
    """Return the USING of ``USING SAMPLE`` among the last tokens of a text; None without one."""
    for token in tokens:
        if token.upper() == "USING" and _SAMPLE.match(text, token.end_pos or 0):
            return token
    return None


def sample_remedy(
    token: Token, expected: frozenset[str], before: Sequence[Token], text: str
) -> str:
    """Return the remedy for an unexpected token in or near a sample, "" for any other.

    Args:
        token: the unexpected token.
        expected: the terminals that the grammar allows in its place.
        before: the tokens before it.
        text: the whole text.
    """
    is_clause = "NOT_SAMPLED" in expected
    if token.upper() == "USING" and _SAMPLE.match(text, token.end_pos or 0):
        return _RATE
    if is_clause and token.upper() == "NOT" and _NOT_SAMPLED.match(text, token.end_pos or 0):
        return "write NOT SAMPLED at the end of the query"
    is_sample = is_clause and token.upper() == "SAMPLE"
    if is_sample or (token.type in _NUMBERS and before and before[-1].upper() == "SAMPLE"):
        return f"{_RATE}; {_BY}"
    return ""
