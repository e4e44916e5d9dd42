"""Syntax nodes → canonical GSQL, which parses to the same nodes.

Keywords are in capitals, brackets are written only where the nodes need them, and each clause is on
its own line.
"""

from __future__ import annotations

import re
from functools import singledispatch
from typing import TYPE_CHECKING

from gscope.queries.gsql import nodes
from gscope.queries.gsql.expression_printer import print_expression
from gscope.queries.gsql.literals import quote, write_interval, write_literal
from gscope.queries.gsql.nodes import JoinKind, LiteralKind
from gscope.queries.gsql.scanner import RESERVED

if TYPE_CHECKING:
    from gscope.queries.gsql.nodes import Body, Extent, Input, Window

__all__ = ["print_body", "print_expression", "print_file", "print_protocol", "print_query"]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INDENT = "  "


def print_file(file: nodes.File) -> str:
    """Return all queries and protocol definitions of a file, with an empty line between them."""
    return "\n\n".join(_print_item(item) for item in file.items) + ("\n" if file.items else "")


def print_query(query: nodes.Query) -> str:
    """Return a query with its DEFINE and PARAM blocks, without the semicolon behind it."""
    entries = [(entry.name, write_literal(entry.value)) for entry in query.define]
    if query.name is not None:
        entries.insert(0, ("query_name", quote(query.name)))
    blocks = [_print_block("DEFINE", entries)] if entries else []
    if query.params:
        blocks.append(
            _print_block("PARAM", [(entry.name, entry.type_name) for entry in query.params])
        )
    return "\n".join([*blocks, print_body(query.body)])


def print_protocol(protocol: nodes.ProtocolDefinition) -> str:
    """Return a protocol definition as text."""
    head = f"PROTOCOL {protocol.name} ({protocol.parent})"
    if protocol.where is not None:
        head += f" WHERE {print_expression(protocol.where)}"
    lines = [
        f"{_INDENT}{field.name} = {print_expression(field.expression)};"
        for field in protocol.fields
    ]
    return "\n".join([f"{head} {{", *lines, "}"])


@singledispatch
def print_body(body: Body) -> str:
    """Return a SELECT, MERGE, WATCHLIST or WITH as text."""
    message = f"no query: {body!r}"
    raise TypeError(message)


@print_body.register
def _(body: nodes.Select) -> str:
    outputs = ", ".join(_print_output(output) for output in body.outputs)
    clauses = [
        f"SELECT {'DISTINCT ' if body.distinct else ''}{outputs}",
        _print_from(body),
        _clause("WHERE", body.where),
        _terms("GROUP BY", body.group_by),
        _terms("SUPERGROUP", body.supergroup),
        _clause("HAVING", body.having),
        _clause("CLEANING_WHEN", body.cleaning_when),
        _clause("CLEANING_BY", body.cleaning_by),
        _clause("CLOSING_WHEN", body.closing_when),
        _print_order(body.order_by),
        "" if body.limit is None else f"LIMIT {_print_extent(body.limit)}",
        _print_sampling(body),
    ]
    return "\n".join(clause for clause in clauses if clause)


@print_body.register
def _(body: nodes.MergeQuery) -> str:
    sampling = _print_sampling(body)
    end = f"\n{sampling}" if sampling else ""
    if not body.columns:
        return "\nUNION ALL\n".join(_print_member(one) for one in body.inputs) + end
    columns = " : ".join(print_expression(column) for column in body.columns)
    slack = "" if body.slack is None else f" SLACK {_print_extent(body.slack)}"
    inputs = ", ".join(_print_input(one) for one in body.inputs)
    return f"MERGE {columns}{slack}\nFROM {inputs}{end}"


@print_body.register
def _(body: nodes.WatchlistQuery) -> str:
    fields = [f"{_INDENT}{field.type_name} {field.name};" for field in body.fields]
    return "\n".join(["WATCHLIST FIELDS {", *fields, "}"])


@print_body.register
def _(body: nodes.With) -> str:
    bindings = ", ".join(
        f"{binding.name} AS {_bracketed(binding.body)}" for binding in body.bindings
    )
    return f"WITH {bindings}\n{print_body(body.body)}"


def _print_member(one: Input) -> str:
    """Return a part of UNION ALL, in brackets if it is more than one SELECT."""
    assert isinstance(one, nodes.SubqueryInput)
    is_bare = isinstance(one.body, nodes.Select) and not (
        one.body.order_by or one.body.limit or _print_sampling(one.body)
    )
    return print_body(one.body) if is_bare else _bracketed(one.body)


def _print_item(item: nodes.Query | nodes.ProtocolDefinition) -> str:
    return (
        print_protocol(item)
        if isinstance(item, nodes.ProtocolDefinition)
        else f"{print_query(item)};"
    )


def _print_block(word: str, entries: list[tuple[str, str]]) -> str:
    return "\n".join([f"{word} {{", *(f"{_INDENT}{name} {value};" for name, value in entries), "}"])


def _print_output(output: nodes.OutputItem | nodes.Star) -> str:
    if isinstance(output, nodes.Star):
        return "*" if output.qualifier is None else f"{output.qualifier}.*"
    return _named(output)


def _named(term: nodes.OutputItem | nodes.GroupTerm) -> str:
    name = "" if term.name is None else f" AS {term.name}"
    return f"{print_expression(term.expression)}{name}"


def _clause(words: str, condition: nodes.Expression | None) -> str:
    return "" if condition is None else f"{words} {print_expression(condition)}"


def _terms(words: str, terms: tuple[nodes.GroupTerm, ...]) -> str:
    return f"{words} {', '.join(_named(term) for term in terms)}" if terms else ""


def _print_order(terms: tuple[nodes.OrderTerm, ...]) -> str:
    written = (
        print_expression(term.expression)
        + (" DESC" if term.is_descending else "")
        + (" NULLS FIRST" if term.has_nulls_first else "")
        for term in terms
    )
    return f"ORDER BY {', '.join(written)}" if terms else ""


def _print_sampling(query: nodes.Select | nodes.MergeQuery) -> str:
    if query.is_not_sampled:
        return "NOT SAMPLED"
    terms = ", ".join(map(print_expression, query.sample_by))
    return f"SAMPLE BY {terms}" if terms else ""


def _print_from(select: nodes.Select) -> str:
    text = f"FROM {_print_input(select.inputs[0])}"
    for join, joined in zip(select.joins, select.inputs[1:], strict=True):
        is_comma = join.kind is JoinKind.INNER and join.on is None
        text += f"{',' if is_comma else _print_join(join)} {_print_input(joined)}"
        if join.on is not None:
            text += f" ON {print_expression(join.on)}"
    return text


def _print_join(join: nodes.JoinClause) -> str:
    bound = join.bound
    if join.is_sql:
        return f" {_SQL_JOINS[join.kind]}"
    if bound is None:
        return f" {join.kind.value}"
    return f" {join.kind.value}({print_expression(bound.column)}, {_print_extent(bound.span)})"


_SQL_JOINS = {
    JoinKind.OUTER: "FULL JOIN",
    JoinKind.LEFT_OUTER: "LEFT JOIN",
    JoinKind.RIGHT_OUTER: "RIGHT JOIN",
}


def _print_input(one: Input) -> str:
    text = _bracketed(one.body) if isinstance(one, nodes.SubqueryInput) else _print_stream(one)
    if one.alias is not None:
        text += f" AS {one.alias}"
    if one.window is not None:
        text += f" {_print_window(one.window)}"
    return text


def _print_stream(stream: nodes.NamedInput) -> str:
    name = _word(stream.name)
    if stream.library is not None:
        return "/".join([*(_word(folder) for folder in stream.library.split("/")), name])
    if stream.interface_set is not None:
        return f"[{_word(stream.interface_set)}].{name}"
    return ".".join(
        [*(_word(part) for part in (stream.host, stream.interface) if part is not None), name]
    )


def _word(name: str) -> str:
    """Return a name, in quotes if it is not an identifier."""
    is_plain = _IDENTIFIER.fullmatch(name) and name.upper() not in RESERVED
    return name if is_plain else quote(name)


def _print_window(window: Window) -> str:
    on = "" if window.on is None else f" ON {print_expression(window.on)}"
    if isinstance(window, nodes.SlicesWindow):
        return f"[SLICES {', '.join(_print_extent(one) for one in window.slices)}{on}]"
    slide = "" if window.slide is None else f" SLIDE {_print_extent(window.slide)}"
    return f"[RANGE {_print_extent(window.range)}{slide}{on}]"


def _print_extent(extent: Extent) -> str:
    if (
        isinstance(extent, nodes.LiteralSyntax)
        and extent.kind is LiteralKind.INTERVAL
        and isinstance(extent.value, int)
    ):
        return quote(write_interval(extent.value))
    return print_expression(extent)


def _bracketed(body: Body) -> str:
    """Return a subquery in brackets, indented.

    Texts in quotes may span lines, so a line is indented only if no quote is open.
    """
    pieces: list[str] = []
    inside_quotes = False
    for line in print_body(body).split("\n"):
        pieces.append(line if inside_quotes or not pieces else _INDENT + line)
        inside_quotes ^= line.count("'") % 2 == 1
    return "(" + "\n".join(pieces) + ")"
