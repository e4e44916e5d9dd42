"""Joins: several inputs of a SELECT become one, from left to right.

SELECT … FROM a, b WHERE p                Join(Filter(p of a, a), Filter(p of b, b))
SELECT … FROM a, b, c WHERE p             Join(Join(a, b), c)

Packets take part as tuples of the fields that the query reads.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from gscope.queries.analysis.groups.epochs import time_field
from gscope.queries.analysis.joins.columns import JoinColumns
from gscope.queries.analysis.joins.conditions import classify, read_clauses
from gscope.queries.analysis.joins.filter_join import filter_join, read_lookback
from gscope.queries.analysis.joins.inputs import JoinNames, open_join_input
from gscope.queries.analysis.joins.join_source import JoinSource
from gscope.queries.analysis.joins.refusals import check_bounded
from gscope.queries.analysis.joins.sql_spelling import is_sql
from gscope.queries.analysis.joins.watchlist_join import check_kind, watchlist_join
from gscope.queries.analysis.names.watchlists import WatchlistSource
from gscope.queries.analysis.typing.column_facts import facts_of
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Call, Column
from gscope.queries.expressions.schema import Schema, free_name
from gscope.queries.plan.logical import Filter, Join, QueryScan
from gscope.queries.plan.trees import conjunction, map_expression
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gscope.queries.analysis.joins.conditions import Conditions, Equality
    from gscope.queries.analysis.joins.filter_join import Lookback
    from gscope.queries.analysis.joins.inputs import JoinInput
    from gscope.queries.analysis.names.scope import Source
    from gscope.queries.analysis.typing.parameters import Substitutes
    from gscope.queries.catalog.ordering.temporal import Leaf
    from gscope.queries.expressions.expressions import Expression, NamedExpression
    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.expressions.types import Ordering
    from gscope.queries.gsql import nodes
    from gscope.queries.plan.logical import Node, Watchlist


def join_inputs(
    body: nodes.Select, sources: Sequence[Source], substitutes: Substitutes
) -> JoinSource:
    """Join the inputs of a SELECT into one, which has WHERE and every ON applied.

    Raises:
        ResolveError: a name is unknown or ambiguous.
        TypeMismatchError: a condition is not BOOL.
        TemporalError: nothing bounds the state of a join.
    """
    names = JoinNames(tuple(open_join_input(n, source) for n, source in enumerate(sources)))
    clauses = read_clauses(body, names, substitutes)
    first = names.inputs[0]
    joined = _Joined(
        _filter_input(first, clauses.filters[0]), {c: c for c in first.meanings.values()}, {}
    )
    for later in names.inputs[1:]:
        step = _JoinStep(
            later,
            body.joins[later.number - 1],
            tuple(clauses.filters[later.number]),
            tuple(clauses.joins[later.number]),
            names.inputs[: later.number],
            body.inputs[later.number],
        )
        check_kind(step.clause, later.source, step.position)
        joined = joined.filtered(clauses.before[later.number])
        if isinstance(later.source, WatchlistSource):
            joined = joined.with_watchlist(step, later.source.watchlist)
        elif step.clause.bound is not None:
            lookback = read_lookback(step.clause.bound, names.inputs, substitutes)
            joined = joined.with_match(step, lookback)
        else:
            joined = joined.with_stream(step)
    source = _open(joined, names, is_sql=is_sql(body))
    return source.filtered(clauses.after, substitutes)


def _open(joined: _Joined, names: JoinNames, *, is_sql: bool) -> JoinSource:
    """Open the result of all joins for look-up by the names of the inputs."""
    sources = [each.source for each in names.inputs]
    queries = {s.node.query: s.facts for s in sources if isinstance(s.node, QueryScan)}
    columns = {c.name: c for c in joined.columns.values()}
    return JoinSource(
        node=joined.node,
        what=" and ".join(source.what for source in sources),
        qualifiers=tuple(q for source in sources for q in source.qualifiers),
        fields=columns,
        stars=tuple(columns),
        names=names,
        columns=joined.columns,
        filled=joined.filled,
        is_sql=is_sql,
        facts=facts_of(joined.node, queries),
    )


@dataclass(frozen=True, slots=True)
class _JoinStep:
    """The join of one input with all inputs before it.

    For b in ``FROM a LEFT_OUTER_JOIN b ON a.time = b.time WHERE b.len > 100``:

    Attributes:
        input: b.
        clause: ``LEFT_OUTER_JOIN``, with ON and the bound of a FILTER_JOIN.
        filters: ``b.len > 100``: the conditions on b alone.
        conditions: ``a.time = b.time``: the conditions on b and earlier inputs.
        earlier: a: the inputs before b.
        position: the place of b in the text, for messages.
    """

    input: JoinInput
    clause: nodes.JoinClause
    filters: tuple[Expression, ...]
    conditions: tuple[Expression, ...]
    earlier: Sequence[JoinInput]
    position: nodes.Node


@dataclass(frozen=True, slots=True)
class _Joined:
    """The join of the inputs so far.

    After ``FROM a, b WHERE a.tb = b.tb`` with columns tb and n in both:

    Attributes:
        node: the join, with columns tb, n and b_n.
        columns: the column of ``node`` for each column of an input: tb for ``a.tb`` and ``b.tb``.
        filled: see ``JoinSource``.
    """

    node: Node
    columns: Mapping[Column, Column]
    filled: Mapping[Expression, Column]

    def filtered(self, predicates: Sequence[Expression]) -> _Joined:
        """Return the rows for which ``predicates`` over the inputs hold."""
        predicate = conjunction([_replace_columns(p, self.columns) for p in predicates])
        if predicate is None:
            return self
        return replace(self, node=Filter(self.node, predicate, self.node.schema))

    def with_stream(self, step: _JoinStep) -> _Joined:
        """Return these inputs joined with a stream."""
        right = _filter_input(step.input, step.filters)
        conditions = self._classify(step, right)
        epochs = check_bounded(conditions, step.earlier, step.input, step.position)
        join_columns = self._relate_columns(step, right, conditions, epochs)
        result = _ResultColumns()
        for column in (*_columns(self.node, 0), *_columns(right, 1)):
            result.add(join_columns, column, step.input.label)
        filled = {_rebuild(e, result.of): result.of[c] for e, c in self.filled.items()}
        filled |= _fill_epochs(result, join_columns, epochs)
        node = Join(
            kind=step.clause.kind,
            inputs=(self.node, right),
            epochs=epochs,
            keys=conditions.keys,
            residual=conjunction(conditions.residual),
            columns=tuple(result.columns),
            schema=Schema(tuple(result.schema)),
            interval=conditions.interval,
        )
        columns = {c: result.of[side] for c, side in self._columns_of_sides(step.input).items()}
        return _Joined(node, columns, {e: c for e, c in filled.items() if e != c})

    def with_watchlist(self, step: _JoinStep, watchlist: Watchlist) -> _Joined:
        """Return these inputs joined with a table."""
        conditions = self._classify(step, step.input.node)
        label = step.input.label
        node, names = watchlist_join(self.node, watchlist, conditions, step.filters, label)
        columns = {
            c: Column(names[c.name], c.type, c.is_nullable) for c in step.input.meanings.values()
        }
        return _Joined(node, {**self.columns, **columns}, self.filled)

    def with_match(self, step: _JoinStep, lookback: Lookback) -> _Joined:
        """Return the rows that have a match in one more input, without the columns of that."""
        right = _filter_input(step.input, step.filters)
        conditions = self._classify(step, right)
        node = filter_join(self.node, right, conditions, lookback, step.clause)
        columns = {
            c: Column(column.name, column.type, column.is_nullable)
            for c, column in self.columns.items()
        }
        return _Joined(node, columns, {})

    def _classify(self, step: _JoinStep, right: Node) -> Conditions:
        """Classify the conditions of a step, over these inputs (0) and ``right`` (1)."""
        columns = self._columns_of_sides(step.input)
        predicates = [_replace_columns(p, columns) for p in step.conditions]
        return classify(predicates, self._ordering(right))

    def _relate_columns(
        self, step: _JoinStep, right: Node, conditions: Conditions, epochs: Equality
    ) -> JoinColumns:
        """Return how the columns of both sides appear in the result."""
        return JoinColumns(
            step.clause.kind,
            epochs,
            conditions.equalities,
            self._ordering(right),
            conditions.interval,
            lambda column: time_field((self.node, right)[column.input], column.name),
            step.clause.is_sql,
        )

    def _columns_of_sides(self, right: JoinInput) -> dict[Column, Column]:
        """Return the columns of these inputs as input 0, those of ``right`` as input 1."""
        return {**self.columns, **{c: replace(c, input=1) for c in right.meanings.values()}}

    def _ordering(self, right: Node) -> Callable[[Leaf], Ordering]:
        schemas = self.node.schema, right.schema
        return lambda leaf: (
            schemas[leaf.input if isinstance(leaf, Column) else 0][leaf.name].ordering
        )


@dataclass(slots=True)
class _ResultColumns:
    """The columns of the result of a join, in order.

    Attributes:
        columns: each with its expression over both sides.
        schema: the same columns with type and ordering.
        of: the result's column for each column of a side; columns that are always equal share one.
    """

    columns: list[NamedExpression] = field(default_factory=list)
    schema: list[ColumnSchema] = field(default_factory=list)
    of: dict[Column, Column] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """The names in use."""
        return {column.name for column in self.schema}

    def add(self, join_columns: JoinColumns, column: Column, label: str) -> None:
        """Add a column of a side; ``label`` comes before a name that the other side has, too."""
        equal = join_columns.equal_column(column)
        if equal is not None and equal in self.of:
            self.of[column] = self.of[equal]
            return
        taken = self.names
        name = column.name if column.name not in taken else f"{label}_{column.name}"
        named, schema = join_columns.result(free_name(name, taken), column)
        self.of[column] = self.append(named, schema)

    def append(self, named: NamedExpression, schema: ColumnSchema) -> Column:
        """Append a column and return it as an expression over the result."""
        self.columns.append(named)
        self.schema.append(schema)
        return Column(schema.name, schema.type, schema.is_nullable)


def _fill_epochs(
    result: _ResultColumns, join_columns: JoinColumns, epochs: Equality
) -> dict[Expression, Column]:
    """Add a column with the epoch if a missing side hides it; return what it is the value of."""
    missing = [e for side in epochs if (e := _rebuild(side, result.of)).is_nullable]
    epoch = join_columns.filled_epoch(free_name("epoch", result.names))
    if epoch is None or not missing:
        return {}
    return dict.fromkeys(missing, result.append(*epoch))


def _filter_input(joined: JoinInput, predicates: Sequence[Expression]) -> Node:
    """Return an input as far as the conditions on it alone hold."""
    predicate = conjunction(predicates)
    if predicate is None:
        return joined.node
    own = {c: replace(c, input=0) for c in joined.meanings.values()}
    return Filter(joined.node, _replace_columns(predicate, own), joined.node.schema)


def _replace_columns(expression: Expression, columns: Mapping[Column, Column]) -> Expression:
    return map_expression(
        expression, lambda part: columns[part] if isinstance(part, Column) else part
    )


def _rebuild(expression: Expression, columns: Mapping[Column, Column]) -> Expression:
    """Return ``expression`` over other columns, typed as over them."""
    if isinstance(expression, Column):
        return columns[expression]
    if isinstance(expression, Call):
        return call(expression.function, *(_rebuild(a, columns) for a in expression.arguments))
    return expression


def _columns(node: Node, number: int) -> list[Column]:
    return [Column(c.name, c.type, c.is_nullable, number) for c in node.schema.columns]
