"""FILTER_JOIN: the tuples of one input that match a tuple of the other from shortly before.

``FILTER_JOIN(t, n)`` keeps a tuple l if there is a tuple r with equal keys and l.t - n <= r.t <=
l.t. In buckets of n values of t, r is in the bucket of l or in the one before. Of all tuples with
equal keys, the first of the same bucket decides, or the last of the bucket before:

    seen   := bucket := r.t / n, keys; first := min(r.t), last := max(r.t)
    result := l LEFT JOIN seen ON l.t / n = bucket      AND keys
                LEFT JOIN seen ON l.t / n = bucket + 1  AND keys
              WHERE first <= l.t OR last >= l.t - n

So an LFTA reduces the other input by partial aggregation, and no tuple is emitted twice. With n = 0
it is the INNER join with the distinct keys of the same t. Buckets are rounded down, so that those
below 0 are as wide as those above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import ResolveError, TemporalError, TypeMismatchError, UnsupportedError
from gscope.queries.analysis.joins.columns import JoinColumns
from gscope.queries.analysis.joins.merge import increasing_instead
from gscope.queries.analysis.typing.constants import apply
from gscope.queries.analysis.typing.schemas import column_schema, group_schema
from gscope.queries.expressions.expressions import Column, Expression, Literal, NamedExpression
from gscope.queries.expressions.schema import ColumnSchema, Schema, free_name
from gscope.queries.expressions.types import Direction, GsqlType
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.logical import AggregateCall, Filter, GroupBy, Join, Node
from gscope.queries.plan.trees import of_input
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.analysis.joins.conditions import Conditions, Equality
    from gscope.queries.analysis.joins.inputs import JoinInput
    from gscope.queries.analysis.typing.parameters import Substitutes
    from gscope.queries.catalog.ordering.temporal import Leaf
    from gscope.queries.expressions.types import Ordering
    from gscope.queries.gsql import nodes

_SPAN_TYPES = {GsqlType.INT: GsqlType.INT, GsqlType.TIMESTAMP: GsqlType.INTERVAL}


@dataclass(frozen=True, slots=True)
class Lookback:
    """How far a FILTER_JOIN looks back, and along which column of each input.

    For ``FILTER_JOIN(time, 5) FROM a, b``:

    Attributes:
        left: a.time, as a column of input 0.
        right: b.time, as a column of input 1.
        span: 5: an INT for INT columns, an INTERVAL for TIMESTAMP columns.
    """

    left: Column
    right: Column
    span: Literal

    def bucket(self, column: Expression) -> Expression:
        """Return the bucket that a value of ``column`` falls into."""
        if not self.span.value:
            return column
        if self.span.type is GsqlType.INTERVAL:
            column = apply("ts_to_int", column)
        return apply("floor_div", column, Literal(self.span.value, GsqlType.INT))

    def earliest(self, column: Expression) -> Expression:
        """Return the earliest value that still matches a value of ``column``."""
        subtract = "ts_sub" if self.span.type is GsqlType.INTERVAL else "sub_int"
        return apply(subtract, column, self.span)


def read_lookback(
    bound: nodes.FilterBound, inputs: Sequence[JoinInput], substitutes: Substitutes
) -> Lookback:
    """Read ``(column, span)`` of a FILTER_JOIN; both inputs have a column of this name.

    Raises:
        ResolveError: an input has no such column.
        TemporalError: the column does not increase in both inputs.
        TypeMismatchError: the span is not a length along the column.
    """
    text = bound.column.parts[-1]
    columns = []
    for number, each in enumerate(inputs):
        column = each.find(text)
        if column is None:
            message = f"{each.label} has no column {text} for FILTER_JOIN to look back along"
            remedy = "name a column that both inputs have, such as time"
            raise ResolveError(message, position=bound.column.position, remedy=remedy)
        if each.node.schema[column.name].ordering.direction is not Direction.INCREASING:
            message = (
                f"{text} does not increase in {each.label}, so a join cannot look back along it"
            )
            remedy = increasing_instead(each.node.schema, column.name, "look back along")
            raise TemporalError(message, position=bound.column.position, remedy=remedy)
        columns.append(Column(column.name, column.type, is_nullable=False, input=number))
    left, right = columns
    span = substitutes.constant(bound.span)
    fits = left.type is right.type and span.type is _SPAN_TYPES.get(left.type)
    if not fits or not isinstance(span.value, int) or span.value < 0:
        message = (
            f"{text} is {left.type.value}: FILTER_JOIN cannot look back by this length along it"
        )
        remedy = "write a whole number of its unit, or an INTERVAL for TIMESTAMP"
        raise TypeMismatchError(message, position=bound.span.position, remedy=remedy)
    return Lookback(left, right, span)


def filter_join(
    left: Node, right: Node, conditions: Conditions, lookback: Lookback, join: nodes.JoinClause
) -> Node:
    """Return the tuples of ``left`` that have a match; the first columns are those of ``left``.

    Raises:
        UnsupportedError: a condition on both inputs is not an equality.
    """
    if conditions.residual:
        message = "FILTER_JOIN supports only equalities between its inputs"
        remedy = "test each input alone, or write INNER_JOIN"
        raise UnsupportedError(message, position=join.position, remedy=remedy)
    keys = conditions.equalities
    seen = _first_and_last(right, keys, lookback)
    bucket = Column("bucket", seen.schema["bucket"].type, is_nullable=False, input=1)
    pairs = tuple(
        (mine, Column(k.name, k.expression.type, k.expression.is_nullable, 1))
        for (mine, _), k in zip(keys, seen.keys[1:], strict=True)
    )
    epoch = lookback.bucket(lookback.left)
    if not lookback.span.value:
        return _join(JoinKind.INNER, left, seen, (epoch, bucket), pairs, ())
    same = _join(JoinKind.LEFT_OUTER, left, seen, (epoch, bucket), pairs, ("first",))
    before = apply("add_int", bucket, Literal(1, GsqlType.INT))
    both = _join(JoinKind.LEFT_OUTER, same, seen, (epoch, before), pairs, ("last",))
    first, last = (Column(c.name, c.type, c.is_nullable) for c in both.schema.columns[-2:])
    near = apply(
        "or",
        apply("le", first, lookback.left),
        apply("ge", last, lookback.earliest(lookback.left)),
    )
    return Filter(both, near, both.schema)


def _first_and_last(right: Node, keys: Sequence[Equality], lookback: Lookback) -> GroupBy:
    """Return the first and the last of the tuples with equal keys in each bucket."""

    def ordering(leaf: Leaf) -> Ordering:
        return right.schema[leaf.name].ordering

    column = of_input(lookback.right, 0)
    terms = (
        NamedExpression("bucket", lookback.bucket(column)),
        *(
            NamedExpression(f"key_{number}", of_input(theirs, 0))
            for number, (_, theirs) in enumerate(keys, start=1)
        ),
    )
    calls = tuple(
        AggregateCall(name, function, (column,), lookback.right.type, is_nullable=False)
        for name, function in (("first", "min"), ("last", "max"))
    )
    schema = group_schema(
        [column_schema(term, ordering) for term in terms],
        {"bucket"},
        [ColumnSchema(c.name, c.type, c.is_nullable) for c in calls],
    )
    return GroupBy(right, terms, "bucket", calls, schema)


def _join(
    kind: JoinKind,
    left: Node,
    right: Node,
    epochs: Equality,
    keys: tuple[Equality, ...],
    extras: Sequence[str],
) -> Join:
    """Return a join with the columns of the left and, under free names, ``extras`` of the right."""
    schemas = left.schema, right.schema

    def ordering(leaf: Leaf) -> Ordering:
        return schemas[leaf.input if isinstance(leaf, Column) else 0][leaf.name].ordering

    join_columns = JoinColumns(kind, epochs, (epochs, *keys), ordering)
    results = [
        join_columns.result(c.name, Column(c.name, c.type, c.is_nullable))
        for c in left.schema.columns
    ]
    for extra in extras:
        c = right.schema[extra]
        name = free_name(extra, {named.name for named, _ in results})
        results.append(join_columns.result(name, Column(extra, c.type, c.is_nullable, 1)))
    columns, schema = zip(*results, strict=True)
    return Join(kind, (left, right), epochs, keys, None, columns, Schema(schema))
