# ruff: noqa: D102 - the methods are the rules of grammar.lark
"""The parser's actions for the rules of FROM."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lark import Token, Transformer, v_args

from gscope.errors import GsqlSyntaxError
from gscope.queries.gsql import nodes
from gscope.queries.gsql.foreign_words import FOREIGN_WORDS, JOIN_WORDS
from gscope.queries.gsql.intervals import UNITS_NS, read_interval_ns
from gscope.queries.gsql.literals import read_literal
from gscope.queries.gsql.nodes import JoinKind, LiteralKind
from gscope.queries.gsql.scanner import span, token_position
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.gsql.nodes import Body, Extent, Input, Window

_NUMBER = re.compile(r" *[0-9]+ *")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class FromClause:
    """The inputs of FROM, and the joins between them.

    Attributes:
        inputs: at least one.
        joins: for each input but the first how it is joined; None where a comma stands.
    """

    inputs: tuple[Input, ...]
    joins: tuple[nodes.JoinClause | None, ...]


@dataclass(frozen=True, slots=True)
class _Alias:
    name: str


@v_args(inline=True)
class InputBuilder(Transformer[Token, Any]):
    """The actions for the rules of inputs, joins and windows."""

    def inputs(self, first: Input, *joined: tuple[nodes.JoinClause | None, Input]) -> FromClause:
        return FromClause((first, *(one for _, one in joined)), tuple(join for join, _ in joined))

    def joined(self, *parts: Any) -> tuple[nodes.JoinClause | None, Input]:
        *kind, one, condition = parts
        join: nodes.JoinClause | None = kind[0] if kind else None
        if condition is not None:
            join = replace(
                join or nodes.JoinClause(JoinKind.INNER, position=one.position), on=condition
            )
        return join, one

    def inner_join(self, word: Token, *_: Token) -> nodes.JoinClause:
        return nodes.JoinClause(JoinKind.INNER, position=token_position(word))

    def outer_join(self, word: Token, *_: Token) -> nodes.JoinClause:
        return _outer_join(JoinKind.OUTER, word)

    def left_outer_join(self, word: Token, *_: Token) -> nodes.JoinClause:
        return _outer_join(JoinKind.LEFT_OUTER, word)

    def right_outer_join(self, word: Token, *_: Token) -> nodes.JoinClause:
        return _outer_join(JoinKind.RIGHT_OUTER, word)

    def filter_join(self, word: Token, *parts: Any) -> nodes.JoinClause:
        column, span = parts[-2:]
        bound = nodes.FilterBound(column, span, position=column.position)
        return nodes.JoinClause(JoinKind.FILTER, bound=bound, position=token_position(word))

    def watchlist_join(self, word: Token) -> nodes.JoinClause:
        return nodes.JoinClause(JoinKind.WATCHLIST, position=token_position(word))

    def input(self, source: Input, alias: _Alias | None, window: Window | None) -> Input:
        return replace(source, alias=alias.name if alias else None, window=window)

    def windowed_input(self, source: Input, window: Window, alias: _Alias) -> Input:
        return self.input(source, alias, window)

    def subquery(self, bracket: Token, body: Body) -> nodes.SubqueryInput:
        return nodes.SubqueryInput(body, position=token_position(bracket))

    def plain_stream(self, name: Token) -> nodes.NamedInput:
        return nodes.NamedInput(str(name), position=token_position(name))

    def interface_stream(self, interface: Token, name: Token) -> nodes.NamedInput:
        return nodes.NamedInput(
            str(name), interface=str(interface), position=span(token_position(interface), name)
        )

    def host_stream(self, host: Token, interface: Token, name: Token) -> nodes.NamedInput:
        return nodes.NamedInput(
            str(name),
            host=str(host),
            interface=str(interface),
            position=span(token_position(host), name),
        )

    def set_stream(self, bracket: Token, interface_set: Token, name: Token) -> nodes.NamedInput:
        return nodes.NamedInput(
            str(name),
            interface_set=str(interface_set),
            position=span(token_position(bracket), name),
        )

    def library_stream(self, *parts: Token) -> nodes.NamedInput:
        *folders, name = (part for part in parts if part.type != "SLASH")
        return nodes.NamedInput(
            str(name), library="/".join(folders), position=span(token_position(parts[0]), name)
        )

    def part(self, name: Token) -> Token:
        if not name.strip() or "/" in name:
            message = f"invalid name: {str(name)[:40]!r}"
            raise GsqlSyntaxError(message, position=token_position(name))
        return name

    def bare_alias(self, name: Token) -> _Alias:
        if name.upper() in JOIN_WORDS:
            message = f"unexpected {name}"
            remedy = f"{name.upper()} is not part of GSQL: {FOREIGN_WORDS[name.upper()]}"
            raise GsqlSyntaxError(message, position=token_position(name), remedy=remedy)
        return self.alias(name)

    def alias(self, name: Token) -> _Alias:
        return _Alias(str(name))

    def range_window(
        self, bracket: Token, length: Extent, slide: Extent | None, on: nodes.Name | None
    ) -> nodes.RangeWindow:
        return nodes.RangeWindow(length, slide, on, position=token_position(bracket))

    def slices_window(
        self, bracket: Token, slices: tuple[Extent, ...], on: nodes.Name | None
    ) -> nodes.SlicesWindow:
        return nodes.SlicesWindow(slices, on, position=token_position(bracket))

    def slices(self, *slices: Extent) -> tuple[Extent, ...]:
        return slices

    def extent(self, value: Extent) -> Extent:
        if not isinstance(value, nodes.LiteralSyntax) or value.kind in {
            LiteralKind.INTEGER,
            LiteralKind.INTERVAL,
        }:
            return value
        if value.kind is LiteralKind.STRING and isinstance(value.value, str):
            length_ns = read_interval_ns(value.value)
            if length_ns is not None:
                return nodes.LiteralSyntax(length_ns, LiteralKind.INTERVAL, position=value.position)
            if _NUMBER.fullmatch(value.value):
                return read_literal("INTEGER", value.value.strip(), value.position)
            if _IDENTIFIER.fullmatch(value.value):
                return nodes.ParameterReference(value.value, position=value.position)
        message = "invalid length: expected a whole number, or a number and a unit in quotes"
        remedy = f"for example 18, '18 sec' or '5 min'; units: {', '.join(UNITS_NS)}"
        raise GsqlSyntaxError(message, position=value.position, remedy=remedy)


def _outer_join(kind: JoinKind, word: Token) -> nodes.JoinClause:
    """Return an outer join; Gigascope writes its kinds as one word, SQL as several."""
    return nodes.JoinClause(kind, is_sql="_" not in word, position=token_position(word))
