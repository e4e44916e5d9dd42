"""The token at which a parse failed, and kinds of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from lark import Token

END = "$END"
"""The type of the token at the end of the text."""

COMPARISONS = frozenset(["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"])
CLAUSES = frozenset(
    [
        "WHERE",
        "GROUP",
        "SUPERGROUP",
        "HAVING",
        "CLEANING",
        "CLEANING_WHEN",
        "CLEANING_BY",
        "CLOSING",
        "CLOSING_WHEN",
        "ORDER",
        "LIMIT",
        "SAMPLE",
        "SAMPLE_BY",
        "NOT_SAMPLED",
    ]
)


@dataclass(frozen=True, slots=True)
class UnexpectedToken:
    """The token at which the parse failed, with its context.

    Attributes:
        token: the unexpected token; of type `END` at the end of the text.
        expected: the terminals that the grammar allows in its place.
        before: the tokens before it, in the order of the text.
        instead: the terminals that the grammar allows in place of the last token of ``before``.
        text: the whole text.
    """

    token: Token
    expected: frozenset[str]
    before: tuple[Token, ...]
    instead: frozenset[str]
    text: str = ""
