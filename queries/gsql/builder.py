# ruff: noqa: D102 - the methods are the rules of grammar.lark
"""The parser's actions at the end of each rule: they build syntax nodes.

lark calls the methods by the names of rules and aliases in ``grammar.lark``, with the values of the
parts of the rule; None stands for an optional part that is missing. Errors leave here without the
text, which the parser adds.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lark import Token, v_args

from gscope.errors import GsqlSyntaxError, Position
from gscope.queries.gsql import nodes
from gscope.queries.gsql.expression_builder import ExpressionBuilder
from gscope.queries.gsql.input_builder import FromClause, InputBuilder
from gscope.queries.gsql.nodes import JoinKind, LiteralKind
from gscope.queries.gsql.scanner import token_position
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.queries.gsql.nodes import Body, Expression, Extent, GroupTerm, Input, OrderTerm

_START = Position(1, 1)
_CLAUSE_NAMES = {
    "group_by": "GROUP BY",
    "order_by": "ORDER BY",
    "sample_by": "SAMPLE BY",
    "is_not_sampled": "NOT SAMPLED",
}
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause of SELECT or MERGE by the field of the node that it fills.

    Attributes:
        field: the name of the field.
        value: its value.
        position: the place of the clause's first word.
    """

    field: str
    value: (
        Expression
        | Extent
        | tuple[GroupTerm, ...]
        | tuple[OrderTerm, ...]
        | tuple[Expression, ...]
        | bool
    )
    position: Position


@dataclass(frozen=True, slots=True)
class _BarePart:
    """A SELECT without brackets behind UNION ALL."""

    select: nodes.Select


@dataclass(frozen=True, slots=True)
class _QueryName:
    name: str
    position: Position


@dataclass(frozen=True, slots=True)
class _Params:
    entries: tuple[nodes.ParamEntry, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class _Define:
    entries: tuple[nodes.DefineEntry, ...]
    position: Position


@v_args(inline=True)
class Builder(ExpressionBuilder, InputBuilder):
    """The actions for all rules; those for files and queries are here."""

    def file(self, *items: nodes.Query | nodes.ProtocolDefinition) -> nodes.File:
        return nodes.File(items, position=_START)

    def query(self, *parts: Any) -> nodes.Query:
        *blocks, body = parts
        names = [block for block in blocks if isinstance(block, _QueryName)]
        defines = _at_most_one("DEFINE", [block for block in blocks if isinstance(block, _Define)])
        params = _at_most_one("PARAM", [block for block in blocks if isinstance(block, _Params)])
        entries = defines.entries if defines else ()
        names += [_query_name(entry) for entry in entries if entry.name == "query_name"]
        for other in names[1:]:
            if other.name != names[0].name:
                message = f"this query is already called {names[0].name!r}"
                raise GsqlSyntaxError(message, position=other.position, remedy="give it one name")
        return nodes.Query(
            names[0].name if names else None,
            body,
            tuple(entry for entry in entries if entry.name != "query_name"),
            params.entries if params else (),
            position=names[0].position if names else body.position,
        )

    def query_prefix(self, name: Token) -> _QueryName:
        return _QueryName(str(name), token_position(name))

    def define(self, word: Token, *entries: nodes.DefineEntry) -> _Define:
        _refuse_repeats("DEFINE", entries)
        return _Define(entries, token_position(word))

    def define_entry(self, name: Token, value: nodes.LiteralSyntax) -> nodes.DefineEntry:
        return nodes.DefineEntry(str(name), value, position=token_position(name))

    def negative_literal(self, minus: Token, literal: nodes.LiteralSyntax) -> nodes.LiteralSyntax:
        if literal.kind not in {LiteralKind.INTEGER, LiteralKind.FLOAT} or not isinstance(
            literal.value, int | float
        ):
            message = "only a number can follow -"
            raise GsqlSyntaxError(message, position=token_position(minus))
        return replace(literal, value=-literal.value)

    def bare_word(self, word: Token) -> nodes.LiteralSyntax:
        return nodes.LiteralSyntax(str(word), LiteralKind.STRING, position=token_position(word))

    def params(self, word: Token, *entries: nodes.ParamEntry) -> _Params:
        _refuse_repeats("PARAM", entries)
        return _Params(entries, token_position(word))

    def param_entry(self, name: Token, type_name: Token) -> nodes.ParamEntry:
        return nodes.ParamEntry(str(name), str(type_name), position=token_position(name))

    def protocol(
        self,
        name: Token,
        parent: Token,
        where: _Clause | None,
        *fields: nodes.ProtocolFieldDefinition,
    ) -> nodes.ProtocolDefinition:
        condition: Any = where.value if where else None
        return nodes.ProtocolDefinition(
            str(name), str(parent), condition, fields, position=token_position(name)
        )

    def protocol_field(self, name: Token, *rest: Any) -> nodes.ProtocolFieldDefinition:
        return nodes.ProtocolFieldDefinition(str(name), rest[-1], position=token_position(name))

    def with_query(self, word: Token, *parts: Any) -> nodes.With:
        *bindings, body = parts
        return nodes.With(tuple(bindings), body, position=token_position(word))

    def binding(self, name: Token, body: Body) -> nodes.WithBinding:
        return nodes.WithBinding(str(name), body, position=token_position(name))

    def watchlist(self, word: Token, *fields: nodes.WatchField) -> nodes.WatchlistQuery:
        return nodes.WatchlistQuery(fields, position=token_position(word))

    def watch_field(self, type_name: Token, name: Token) -> nodes.WatchField:
        return nodes.WatchField(str(name), str(type_name), position=token_position(name))

    def merge(
        self,
        word: Token,
        columns: tuple[nodes.Name, ...],
        slack: Extent | None,
        inputs: tuple[Input, ...],
        *clauses: _Clause,
    ) -> nodes.MergeQuery:
        if len(columns) != len(inputs):
            message = f"MERGE names {len(columns)} columns, but FROM names {len(inputs)} inputs"
            remedy = "give one column of each input: MERGE a.time : b.time FROM a, b"
            raise GsqlSyntaxError(message, position=token_position(word), remedy=remedy)
        found = _clauses_by_field(clauses, "MERGE")
        return nodes.MergeQuery(columns, inputs, slack, position=token_position(word), **found)

    def union(self, first: Body, *others: Any) -> nodes.MergeQuery | nodes.Select:
        words = [part for part in others if isinstance(part, Token)]
        parts = [part for part in others if not isinstance(part, Token)]
        last = parts[-1].select if isinstance(parts[-1], _BarePart) else None
        members = [first, *(_union_member(part, parts[-1]) for part in parts)]
        inputs = tuple(nodes.SubqueryInput(one, position=one.position) for one in members)
        union = nodes.MergeQuery(
            (),
            inputs,
            sample_by=() if last is None else last.sample_by,
            is_not_sampled=last is not None and last.is_not_sampled,
            position=token_position(words[0]),
        )
        if last is None or not (last.order_by or last.limit is not None):
            return union
        return nodes.Select(
            (nodes.Star(position=union.position),),
            (nodes.SubqueryInput(union, position=first.position),),
            order_by=last.order_by,
            limit=last.limit,
            position=union.position,
        )

    def bare_part(self, select: nodes.Select) -> _BarePart:
        return _BarePart(select)

    def merge_columns(self, *columns: nodes.Name) -> tuple[nodes.Name, ...]:
        return columns

    def merge_inputs(self, *inputs: Input) -> tuple[Input, ...]:
        return inputs

    def select(
        self,
        word: Token,
        distinct: Token | None,
        outputs: tuple[nodes.OutputItem | nodes.Star, ...],
        kind: nodes.JoinClause | None,
        source: FromClause,
        *clauses: _Clause,
    ) -> nodes.Select:
        found = _clauses_by_field(clauses, "SELECT")
        return nodes.Select(
            outputs,
            source.inputs,
            _joins(kind, source),
            distinct is not None,
            position=token_position(word),
            **found,
        )

    def outputs(
        self, *items: nodes.OutputItem | nodes.Star
    ) -> tuple[nodes.OutputItem | nodes.Star, ...]:
        return items

    def output_item(self, expression: Expression, name: Token | None) -> nodes.OutputItem:
        return nodes.OutputItem(expression, _text(name), position=expression.position)

    def star(self, star: Token) -> nodes.Star:
        return nodes.Star(position=token_position(star))

    def qualified_star(self, qualifier: nodes.Name, _star: Token) -> nodes.Star:
        if len(qualifier.parts) > 1:
            message = "only the name of an input is allowed before .*"
            raise GsqlSyntaxError(message, position=qualifier.position)
        return nodes.Star(qualifier.parts[0], position=qualifier.position)

    def where(self, word: Token, condition: Expression) -> _Clause:
        return _Clause("where", condition, token_position(word))

    def having(self, word: Token, condition: Expression) -> _Clause:
        return _Clause("having", condition, token_position(word))

    def cleaning_when(self, *parts: Any) -> _Clause:
        return _Clause("cleaning_when", parts[-1], token_position(parts[0]))

    def cleaning_by(self, *parts: Any) -> _Clause:
        return _Clause("cleaning_by", parts[-1], token_position(parts[0]))

    def closing_when(self, *parts: Any) -> _Clause:
        return _Clause("closing_when", parts[-1], token_position(parts[0]))

    def order_by(self, word: Token, *terms: OrderTerm) -> _Clause:
        return _Clause("order_by", terms, token_position(word))

    def order_term(
        self, expression: Expression, direction: Token | None, nulls: Token | None
    ) -> nodes.OrderTerm:
        return nodes.OrderTerm(
            expression,
            direction is not None and direction.type == "DESC",
            nulls is not None and nulls.type == "FIRST",
            position=expression.position,
        )

    def direction(self, word: Token) -> Token:
        return word

    def nulls_place(self, word: Token) -> Token:
        return word

    def limit(self, word: Token, minus: Token | None, count: Extent) -> _Clause:
        if minus is not None:
            message = "LIMIT takes the number of rows to keep, which is not negative"
            remedy = "for the last rows write ORDER BY … DESC LIMIT 5"
            raise GsqlSyntaxError(message, position=token_position(minus), remedy=remedy)
        return _Clause("limit", count, token_position(word))

    def sample_by(self, word: Token, *terms: Expression) -> _Clause:
        return _Clause("sample_by", terms, token_position(word))

    def not_sampled(self, word: Token) -> _Clause:
        return _Clause("is_not_sampled", True, token_position(word))

    def group_by(self, word: Token, terms: tuple[GroupTerm, ...]) -> _Clause:
        return _Clause("group_by", terms, token_position(word))

    def supergroup(self, word: Token, terms: tuple[GroupTerm, ...]) -> _Clause:
        return _Clause("supergroup", terms, token_position(word))

    def group_terms(self, *terms: GroupTerm) -> tuple[GroupTerm, ...]:
        return terms

    def group_term(self, expression: Expression, name: Token | None) -> nodes.GroupTerm:
        return nodes.GroupTerm(expression, _text(name), position=expression.position)


def _clauses_by_field(clauses: Iterable[_Clause], query: str) -> dict[str, Any]:
    """Return the values of clauses by the field of the node that holds them.

    Raises:
        GsqlSyntaxError: two clauses of ``query`` are of one kind, or contradict each other.
    """
    found: dict[str, _Clause] = {}
    for clause in clauses:
        if clause.field in found:
            name = _CLAUSE_NAMES.get(clause.field, clause.field.upper())
            message = f"a second {name} in one {query}"
            raise GsqlSyntaxError(
                message, position=clause.position, remedy="keep one; join conditions with AND"
            )
        found[clause.field] = clause
    if {"sample_by", "is_not_sampled"} <= set(found):
        message = f"SAMPLE BY and NOT SAMPLED in one {query}"
        position = found["is_not_sampled"].position
        raise GsqlSyntaxError(message, position=position, remedy="keep one of them")
    return {name: clause.value for name, clause in found.items()}


def _union_member(part: Body | _BarePart, last: Body | _BarePart) -> Body:
    """Return a part of UNION ALL; the last has left to the union what belongs to it."""
    if not isinstance(part, _BarePart):
        return part
    select = part.select
    if part is not last:
        if select.order_by or select.limit is not None:
            message = "ORDER BY and LIMIT of UNION ALL belong behind its last SELECT"
            remedy = (
                "to order or limit one part, put it in brackets: (SELECT … LIMIT 5) UNION ALL …"
            )
            raise GsqlSyntaxError(message, position=select.position, remedy=remedy)
        return select
    return replace(select, order_by=(), limit=None, sample_by=(), is_not_sampled=False)


def _at_most_one(name: str, blocks: list[Any]) -> Any:
    if len(blocks) > 1:
        message = f"a second {name} block"
        raise GsqlSyntaxError(
            message, position=blocks[1].position, remedy="put all entries into one block"
        )
    return blocks[0] if blocks else None


def _refuse_repeats(block: str, entries: tuple[nodes.DefineEntry | nodes.ParamEntry, ...]) -> None:
    seen = set()
    for entry in entries:
        if entry.name in seen:
            message = f"{block} has two entries called {entry.name!r}"
            raise GsqlSyntaxError(message, position=entry.position, remedy="keep one")
        seen.add(entry.name)


def _query_name(entry: nodes.DefineEntry) -> _QueryName:
    name = entry.value.value
    if (
        entry.value.kind is not LiteralKind.STRING
        or not isinstance(name, str)
        or not _IDENTIFIER.fullmatch(name)
    ):
        message = "invalid query name: expected letters, digits and _, not starting with a digit"
        raise GsqlSyntaxError(
            message, position=entry.value.position, remedy="for example query_name 'flows';"
        )
    return _QueryName(name, entry.value.position)


def _joins(kind: nodes.JoinClause | None, source: FromClause) -> tuple[nodes.JoinClause, ...]:
    """Return the joins between the inputs; ``kind`` is the one written before FROM."""
    if kind is not None and len(source.inputs) == 1:
        message = "a join needs a second input"
        raise GsqlSyntaxError(
            message, position=source.inputs[0].position, remedy="for example FROM a, b"
        )
    joins = []
    for join, joined in zip(source.joins, source.inputs[1:], strict=True):
        if kind is None:
            joins.append(join or nodes.JoinClause(JoinKind.INNER, position=joined.position))
        elif join is None or join.kind is JoinKind.INNER:
            joins.append(replace(kind, on=join.on if join else None, is_sql=False))
        else:
            message = "a kind of join is already given before FROM"
            raise GsqlSyntaxError(
                message, position=join.position, remedy="write it in one of the two places"
            )
    return tuple(joins)


def _text(name: Token | None) -> str | None:
    return None if name is None else str(name)
