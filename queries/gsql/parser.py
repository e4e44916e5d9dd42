"""GSQL text → syntax nodes.

The parser is LALR(1): it takes time in proportion to the text and never recurses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lark
from lark import Token

from gscope.errors import GsqlSyntaxError
from gscope.queries.gsql import nodes
from gscope.queries.gsql.limits import check_limits
from gscope.queries.gsql.scanner import MAX_TEXT, Scanner, token_position
from gscope.queries.gsql.tables import user_tables

if TYPE_CHECKING:
    from lark.parsers.lalr_interactive_parser import InteractiveParser

    from gscope.queries.gsql.nodes import Expression, File
    from gscope.queries.gsql.tables import Tables


def parse(text: str, source: str = "query") -> File:
    """Return the queries and protocol definitions of a text; none if it has only comments.

    Args:
        text: the whole text.
        source: its name in messages, usually that of the file.

    Raises:
        GsqlSyntaxError: the text is not GSQL, is longer than `MAX_TEXT` or exceeds a limit of
            `check_limits`.
    """
    file = _parse(text, source, "file")
    assert isinstance(file, nodes.File)
    return nodes.File(file.items, source, text, position=file.position)


def parse_expression(text: str, source: str = "expression") -> Expression:
    """Return a single expression.

    Raises:
        GsqlSyntaxError: as for `parse`.
    """
    expression: Expression = _parse(text, source, "expression")
    return expression


def definition_literal(entry: nodes.DefineEntry) -> nodes.LiteralSyntax:
    """Return the value of ``#NAME#``: the literal that its DEFINE entry spells, else its text.

    ``PATTERN 41;`` and ``PATTERN '41';`` are both the integer, ``HOST 'a.b';`` is a STRING.
    """
    if entry.value.kind is not nodes.LiteralKind.STRING:
        return entry.value
    try:
        literal = _parse(str(entry.value.value), "DEFINE", "define_value")
    except GsqlSyntaxError:
        return entry.value
    return nodes.LiteralSyntax(literal.value, literal.kind, position=entry.value.position)


def _parse(text: str, source: str, start: str) -> Any:
    if len(text) > MAX_TEXT:
        message = f"the text is too long: expected at most {MAX_TEXT} characters, got {len(text)}"
        raise GsqlSyntaxError(
            message, text=text, source=source, remedy="split it into several files"
        )
    tables = user_tables()
    try:
        result = _run(tables, text, source, start)
        check_limits(result)
    except GsqlSyntaxError as error:
        raise error.located(text, source) from None
    return result


def _run(tables: Tables, text: str, source: str, start: str) -> Any:
    parser = tables.lark.parse_interactive(start=start)
    tokens: list[Token] = []
    for token in Scanner(text, source, tables.terminals).tokens(parser.choices):
        try:
            parser.feed_token(token)
        except lark.UnexpectedToken:
            raise _unexpected_token(tables, start, tokens, token, text) from None
        tokens.append(token)
    try:
        return parser.feed_token(Token("$END", ""))
    except lark.UnexpectedToken:
        raise _unexpected_token(tables, start, tokens, _end_token(tokens), text) from None


def _unexpected_token(
    tables: Tables, start: str, tokens: list[Token], token: Token, text: str
) -> GsqlSyntaxError:
    """Return the error for a token that the grammar does not allow behind those before it."""
    from gscope.queries.gsql.syntax_errors import diagnose
    from gscope.queries.gsql.unexpected_token import UnexpectedToken

    parser = tables.lark.parse_interactive(start=start)
    for earlier in tokens[:-1]:
        parser.feed_token(earlier)
    instead = _accepted(parser)
    for earlier in tokens[-1:]:
        parser.feed_token(earlier)
    unexpected = UnexpectedToken(token, _accepted(parser), tuple(tokens), instead, text)
    found = diagnose(unexpected, tables.spellings)
    return GsqlSyntaxError(found.message, position=token_position(found.token), remedy=found.remedy)


def _accepted(parser: InteractiveParser) -> frozenset[str]:
    return frozenset(parser.accepts())  # type: ignore[no-untyped-call]  # lark leaves it untyped


def _end_token(tokens: list[Token]) -> Token:
    """Return the end of the text, placed at the last token, so that a caret can mark it."""
    if not tokens:
        return Token("$END", "", 0, 1, 1, end_pos=0)
    last = tokens[-1]
    length = token_position(last).length
    if "\n" in last:
        return Token("$END", "", last.start_pos, last.line, last.column, end_pos=last.end_pos)
    return Token(
        "$END", "", last.end_pos, last.line, (last.column or 1) + length, end_pos=last.end_pos
    )
