"""Joins: several inputs of a SELECT become one, from left to right.

SELECT … FROM a, b WHERE p                Join(Filter(p of a, a), Filter(p of b, b))
SELECT … FROM a, b, c WHERE p             Join(Join(a, b), c)

Packets take part as tuples of the fields that the query reads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gscope.errors import ResolveError, UnsupportedError
from gscope.queries.analysis.groups.epochs import time_field
from gscope.queries.analysis.joins.columns import JoinColumns
from gscope.queries.analysis.joins.conditions import classify, read_clauses
from gscope.queries.analysis.joins.filter_join import Lookback, filter_join, lookback
from gscope.queries.analysis.joins.refusals import empty_interval, unbounded
from gscope.queries.analysis.joins.sides import Names, Side, open_side
from gscope.queries.analysis.joins.sql_spelling import is_sql
from gscope.queries.analysis.joins.watchlist_join import check_kind, watchlist_join
from gscope.queries.analysis.names.scope import Source
from gscope.queries.analysis.names.watchlists import WatchlistSource
from gscope.queries.analysis.typing.column_facts import facts_of
from gscope.queries.analysis.typing.typer import Typer
from gscope.queries.analysis.typing.unsupported import check_where, refuse_aggregate
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Call, Column, walk
from gscope.queries.expressions.free_name import free_name
from gscope.queries.expressions.schema import Schema
from gscope.queries.plan.logical import Filter, Join, Node, QueryScan
from gscope.queries.plan.trees import conjunction, map_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gscope.queries.analysis.typing.parameters import Substitutes
    from gscope.queries.catalog.ordering.temporal import Leaf
    from gscope.queries.expressions.expressions import Expression, NamedExpression
    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.expressions.types import Ordering
    from gscope.queries.gsql import nodes
    from gscope.queries.plan.logical import Watchlist


def join_inputs(
    body: nodes.Select, sources: Sequence[Source], substitutes: Substitutes
) -> JoinSource:
    """The inputs of a SELECT as one, with WHERE and every ON taken in.

    Raises:
        ResolveError: a name is unknown or ambiguous.
        TypeMismatchError: a condition is none.
        TemporalError: nothing bounds the state of a join.
    """
    names = Names(tuple(open_side(number, source) for number, source in enumerate(sources)))
    clauses = read_clauses(body, names, substitutes)
    inputs = [
        _filtered(side, predicates)
        for side, predicates in zip(names.sides, clauses.filters, strict=True)
    ]
    joined = _Joined(inputs[0], {c: c for c in names.sides[0].meanings.values()}, {})
    for side in names.sides[1:]:
        join = body.joins[side.number - 1]
        position = body.inputs[side.number]
        predicates = clauses.joins[side.number]
        before = names.sides[: side.number]
        check_kind(join, side.source, position)
        joined = joined.filtered(clauses.before[side.number])
        if isinstance(side.source, WatchlistSource):
            filters = clauses.filters[side.number]
            joined = joined.with_watchlist(side, side.source.watchlist, filters, predicates)
            continue
        if join.bound is not None:
            look = lookback(join.bound, names.sides, substitutes)
            joined = joined.with_match(join, inputs[side.number], predicates, side, look)
            continue
        joined = joined.with_input(join, side, inputs[side.number], predicates, before, position)
    queries = {s.node.query: s.facts for s in sources if isinstance(s.node, QueryScan)}
    source = JoinSource(
        node=joined.node,
        what=" and ".join(side.source.what for side in names.sides),
        qualifiers=tuple(q for side in names.sides for q in side.source.qualifiers),
        fields={c.name: c for c in joined.columns.values()},
        stars=tuple(dict.fromkeys(c.name for c in joined.columns.values())),
        names=names,
        columns=joined.columns,
        filled=joined.filled,
        is_sql=is_sql(body),
        facts=facts_of(joined.node, queries),
    )
    return source.filtered(clauses.after, substitutes)


@dataclass(frozen=True, slots=True)
class JoinSource(Source):
    """The result of a join, open for look-up by the names of its inputs.

    Attributes:
        columns: for each column of an input the column of the result.
        filled: expressions over the result that have a value also where a column of theirs is missing.
        is_sql: whether outer joins are in SQL's spelling.
    """

    names: Names
    columns: Mapping[Column, Column]
    filled: Mapping[Expression, Column]
    is_sql: bool

    def filtered(
        self, conditions: Sequence[nodes.Expression], substitutes: Substitutes
    ) -> JoinSource:
        """The rows of the result for which WHERE holds.

        Raises:
            GsqlError: a condition is wrong.
        """
        typer = Typer.over(self, substitutes, refuse_aggregate)
        typed: list[Expression] = []
        for condition in conditions:
            check_where(condition)
            found = typer.condition(condition, "in WHERE")
            self._check_missing(found, condition)
            typed.append(found)
        predicate = conjunction(typed)
        if predicate is None:
            return self
        return replace(self, node=Filter(self.node, predicate, self.node.schema))

    def rewrite(self, expression: Expression) -> Expression:
        """What an expression over the result stands for."""
        return self.filled.get(expression, expression)

    def _check_missing(self, condition: Expression, position: nodes.Expression) -> None:
        """Refuse to look for rows without a partner by a column that a FULL JOIN fills.

        Raises:
            UnsupportedError: the condition asks whether such a column is NULL.
        """
        asked = [
            part.arguments[0]
            for part in walk(condition)
            if isinstance(part, Call) and part.function == "is_null"
        ]
        filled = {
            column.name
            for column in (self.node.columns if isinstance(self.node, Join) else ())
            if isinstance(column.expression, Call) and column.expression.function == "coalesce"
        }
        columns = [c for c in asked if isinstance(c, Column) and c.name in filled]
        if columns:
            message = (
                f"{columns[0].name} is never NULL: a FULL JOIN fills the time of a missing side"
            )
            remedy = "test another column of that side"
            raise UnsupportedError(message, position=position.position, remedy=remedy)

    def resolve(self, name: nodes.Name) -> Expression:
        """What ``name`` stands for in the result.

        Raises:
            ResolveError: nothing is called so, or several columns that need not be equal.
        """
        available = [c for c in self.names.candidates(name) if c in self.columns]
        column = available[0] if len(available) == 1 else self.names.resolve(name)
        if column not in self.columns:
            label = self.names.sides[column.input].label
            message = (
                f"FILTER_JOIN asks only whether {label} has a match: it gives none of its columns"
            )
            remedy = f"take it from {self.names.sides[0].label}, or write INNER_JOIN"
            raise ResolveError(message, position=name.position, remedy=remedy)
        if self.is_sql and len(available) > 1:
            return self._any_of([self.columns[each] for each in available])
        return self.columns[column]

    def _any_of(self, results: Sequence[Column]) -> Expression:
        """The value of columns that a join makes equal, of whichever side is there."""
        columns = tuple(dict.fromkeys(results))
        there = (column for column in columns if not column.is_nullable)
        return next(there, columns[0] if len(columns) == 1 else call("coalesce", *columns))

    def star(self, star: nodes.Star) -> list[tuple[str, Expression]]:
        """What ``*`` stands for: all columns of all inputs, or of one.

        Raises:
            ResolveError: no input is called so.
        """
        sides: Sequence[Side] = self.names.sides
        if star.qualifier is not None:
            sides = (self.names.of_qualifier(star.qualifier, star),)
        return [
            (name, self.columns[column])
            for side in sides
            for name, column in side.star()
            if column in self.columns
        ]


@dataclass(frozen=True, slots=True)
class _Joined:
    """The inputs so far, joined: for each of their columns the column of ``node``.

    Attributes:
        filled: see ``JoinSource``.
    """

    node: Node
    columns: Mapping[Column, Column]
    filled: Mapping[Expression, Column]

    def filtered(self, predicates: Sequence[Expression]) -> _Joined:
        """The same rows as far as ``predicates`` hold."""
        predicate = conjunction([_replaced(p, self.columns) for p in predicates])
        if predicate is None:
            return self
        return replace(self, node=Filter(self.node, predicate, self.node.schema))

    def with_input(
        self,
        join: nodes.JoinClause,
        side: Side,
        right: Node,
        predicates: Sequence[Expression],
        before: Sequence[Side],
        position: nodes.Node,
    ) -> _Joined:
        """One more input, joined to these."""
        to_two = self._of_both(side)
        ordering = self._ordering(right)
        conditions = classify([_replaced(p, to_two) for p in predicates], ordering)
        if conditions.epochs is None:
            raise unbounded(conditions, before, side, position)
        if conditions.interval is not None and conditions.interval.width < 0:
            raise empty_interval(conditions.epochs, before, side, position)
        made = JoinColumns(
            join.kind,
            conditions.epochs,
            conditions.equalities,
            ordering,
            conditions.interval,
            lambda column: time_field((self.node, right)[column.input], column.name),
            join.is_sql,
        )
        columns: list[NamedExpression] = []
        schema: list[ColumnSchema] = []
        results: dict[Column, Column] = {}
        for one in _columns(self.node, 0) + _columns(right, 1):
            twin = made.twin(one)
            if twin is not None and twin in results:
                results[one] = results[twin]
                continue
            taken = {c.name for c in schema}
            name = free_name(
                one.name if one.name not in taken else f"{side.label}_{one.name}", taken
            )
            column, described = made.result(name, one)
            columns.append(column)
            schema.append(described)
            results[one] = Column(name, described.type, described.is_nullable)
        filled = {_rebuilt(e, results): results[c] for e, c in self.filled.items()}
        missing = [e for each in conditions.epochs if (e := _rebuilt(each, results)).is_nullable]
        epoch = made.filled_epoch(free_name("epoch", {c.name for c in schema}))
        if epoch is not None and missing:
            columns.append(epoch[0])
            schema.append(epoch[1])
            value = Column(epoch[1].name, epoch[1].type, epoch[1].is_nullable)
            filled |= dict.fromkeys(missing, value)
        node = Join(
            kind=join.kind,
            inputs=(self.node, right),
            epochs=conditions.epochs,
            keys=conditions.keys,
            residual=conjunction(conditions.residual),
            columns=tuple(columns),
            schema=Schema(tuple(schema)),
            interval=conditions.interval,
        )
        columns_of = {c: results[column] for c, column in to_two.items()}
        return _Joined(node, columns_of, {e: c for e, c in filled.items() if e != c})

    def with_watchlist(
        self,
        side: Side,
        watchlist: Watchlist,
        filters: Sequence[Expression],
        predicates: Sequence[Expression],
    ) -> _Joined:
        """These inputs joined with a table."""
        to_two = self._of_both(side)
        conditions = classify([_replaced(p, to_two) for p in predicates], self._ordering(side.node))
        node, names = watchlist_join(self.node, watchlist, conditions, filters, side.label)
        columns = {c: Column(names[c.name], c.type, c.is_nullable) for c in side.meanings.values()}
        return _Joined(node, {**self.columns, **columns}, self.filled)

    def with_match(
        self,
        join: nodes.JoinClause,
        right: Node,
        predicates: Sequence[Expression],
        side: Side,
        look: Lookback,
    ) -> _Joined:
        """These inputs where one more has a match; no column of that is in the result."""
        to_two = self._of_both(side)
        conditions = classify([_replaced(p, to_two) for p in predicates], self._ordering(right))
        node = filter_join(self.node, right, conditions, look, join)
        columns = {
            c: Column(column.name, column.type, column.is_nullable)
            for c, column in self.columns.items()
        }
        return _Joined(node, columns, {})

    def _of_both(self, side: Side) -> dict[Column, Column]:
        """The columns of these inputs as input 0, those of ``side`` as input 1."""
        return {**self.columns, **{c: replace(c, input=1) for c in side.meanings.values()}}

    def _ordering(self, right: Node) -> Callable[[Leaf], Ordering]:
        schemas = self.node.schema, right.schema
        return lambda leaf: (
            schemas[leaf.input if isinstance(leaf, Column) else 0][leaf.name].ordering
        )


def _filtered(side: Side, predicates: Sequence[Expression]) -> Node:
    predicate = conjunction(predicates)
    if predicate is None:
        return side.node
    own = {c: replace(c, input=0) for c in side.meanings.values()}
    return Filter(side.node, _replaced(predicate, own), side.node.schema)


def _replaced(expression: Expression, columns: Mapping[Column, Column]) -> Expression:
    return map_expression(
        expression, lambda part: columns[part] if isinstance(part, Column) else part
    )


def _rebuilt(expression: Expression, columns: Mapping[Column, Column]) -> Expression:
    """``expression`` over other columns, as it would be typed over them."""
    if isinstance(expression, Column):
        return columns[expression]
    if isinstance(expression, Call):
        return call(expression.function, *(_rebuilt(a, columns) for a in expression.arguments))
    return expression


def _columns(node: Node, number: int) -> list[Column]:
    return [Column(c.name, c.type, c.is_nullable, number) for c in node.schema.columns]
