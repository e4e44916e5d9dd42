r"""Long lists of constants behind IN, read as one token.

A list of 100,000 addresses would be 200,000 tokens for the parser. The scanner recognises such a
list as a whole, and this module reads it. A list with anything else in it (comments, names, calls,
a quote inside a text) is parsed as usual.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gscope.errors import Position
from gscope.queries.gsql import nodes
from gscope.queries.gsql.literals import read_literal

if TYPE_CHECKING:
    from collections.abc import Iterator

MIN_CHARACTERS = 1000
"""A shorter list is parsed as usual."""

_BLANKS = r"(?:[ \t]|\r?\n)*+"
_TEXT = r"'[^'\x00-\x1f\x7f-\x9f\u2028\u2029]*+'(?!')"
_INTEGER = r"-?(?:0[xX][0-9a-fA-F]++|[0-9]++)(?![\w.])"
_ONE = rf"(?:{_TEXT}|{_INTEGER})"
_LIST = re.compile(rf"\({_BLANKS}{_ONE}{_BLANKS}(?:,{_BLANKS}{_ONE}{_BLANKS})*+\)")
_PIECE = re.compile(rf"(?P<text>{_TEXT})|(?P<sign>-)?(?P<integer>[0-9]\w*+)|(?P<line>\n)")


def find_list(text: str, at: int) -> int:
    """Return the end of a long list of plain constants that opens at ``at``; 0 if there is none."""
    found = _LIST.match(text, at)
    return found.end() if found and found.end() - at >= MIN_CHARACTERS else 0


def read_list(text: str, start: Position) -> Iterator[nodes.Expression]:
    """Yield the constants of a list that ``find_list`` found; ``start`` is where it opens.

    Raises:
        GsqlSyntaxError: an integer is too large.
    """
    line, line_start = start.line, 1 - start.column
    for piece in _PIECE.finditer(text):
        if piece["line"]:
            line, line_start = line + 1, piece.end()
            continue
        kind = "STRING" if piece["text"] else "INTEGER"
        column = piece.start(kind.lower() if kind == "INTEGER" else "text") - line_start + 1
        written = piece["text"] or piece["integer"]
        value = written[1:-1] if kind == "STRING" else written
        position = Position(line, column, len(written))
        literal = read_literal(kind, value, position)
        if piece["sign"]:
            signed = Position(line, piece.start("sign") - line_start + 1, 1)
            yield nodes.Unary(nodes.UnaryOperator.NEGATE, literal, position=signed)
        else:
            yield literal
