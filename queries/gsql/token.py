"""A word or symbol of a text."""

from __future__ import annotations

from typing import Self


class Token(str):
    """A token: its meaning as a string, its kind and its place.

    Args:
        type_: the terminal of the grammar.
        value: the meaning.
        start_pos: the offset of the first character in the text.
        line: the line of the first character, from 1.
        column: its place in the line, from 1.
        end_pos: the offset behind the last character.

    Attributes:
        type: the terminal of the grammar.
    """

    __slots__ = ("column", "end_pos", "line", "start_pos", "type")

    type: str
    start_pos: int
    line: int
    column: int
    end_pos: int

    def __new__(
        cls, type_: str, value: str, start_pos: int, line: int, column: int, end_pos: int
    ) -> Self:
        """Return a token."""
        token = super().__new__(cls, value)
        token.type = type_
        token.start_pos = start_pos
        token.line = line
        token.column = column
        token.end_pos = end_pos
        return token

    def with_value(self, value: str) -> Token:
        """Return a token of the same kind and place with another meaning."""
        return Token(self.type, value, self.start_pos, self.line, self.column, self.end_pos)

    def __repr__(self) -> str:
        return f"Token({self.type!r}, {str(self)!r})"
