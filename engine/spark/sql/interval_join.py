"""Interval join as Spark SQL text: joins of equal buckets.

Spark finds pairs by equality. Epochs are numbered in buckets as wide as the interval, so that
partners are in the same bucket or in the next: a row of the second side is put into both, a row of
the first side is in one, and every pair is found once. ``engine/operators/interval_join.py`` says
which side is first, and which rows a step reads of each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.engine.spark.sql import equal_join
from gscope.engine.spark.sql.expressions import column_leaf, quote, to_sql
from gscope.engine.spark.sql.inputs import condition
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Column, Expression, Literal, NamedExpression
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.logical import first_side
from gscope.queries.plan.trees import of_input

if TYPE_CHECKING:
    from gscope.engine.spark.sql.inputs import Sources
    from gscope.queries.plan.program import JoinNode

BUCKET = "$bucket"
"""The column that numbers the bucket of a row."""

_PRESENT = "$present"
_LEFT, _RIGHT = 0, 1


def lower(node: JoinNode, sources: Sources) -> str:
    """Return the Spark SQL text of an interval join.

    A FULL join is a LEFT join, and the rows of a RIGHT join that have no partner. Of either side
    only the rows at home in the answered epochs are asked for partners: see ``home_of``.
    """
    if node.kind is not JoinKind.OUTER:
        return _join_of_buckets(node, sources)
    left_at_home = (_at_home(node, _LEFT, sources), sources.rows[_RIGHT])
    left = replace(node, kind=JoinKind.LEFT_OUTER)
    matched = _join_of_buckets(left, replace(sources, rows=left_at_home))
    columns = ", ".join(quote(column.name) for column in node.columns)
    bucket = Column(BUCKET, GsqlType.INT, is_nullable=True, input=_LEFT)
    right = replace(
        node,
        kind=JoinKind.RIGHT_OUTER,
        columns=(*node.columns, NamedExpression(_PRESENT, bucket)),
    )
    right_at_home = (sources.rows[_LEFT], _at_home(node, _RIGHT, sources))
    others = _join_of_buckets(right, replace(sources, rows=right_at_home))
    return f"{matched} UNION ALL SELECT {columns} FROM ({others}) WHERE {quote(_PRESENT)} IS NULL"


def numbered(node: JoinNode) -> JoinNode:
    """Return ``node`` with buckets for epochs; the buckets of a pair may differ by one."""
    return replace(node, epochs=(bucket_of(node, _LEFT), bucket_of(node, _RIGHT)))


def home_of(node: JoinNode, side: int) -> int:
    """Return how far the epoch of a row of ``side`` is above the one that it is answered with.

    That holds for rows without partners. Of the first side it is 0.
    """
    return node.interval_from_first.least if side != first_side(node.kind) else 0


def bucket_of(node: JoinNode, side: int) -> Expression:
    """Return the bucket of a row; partners of the second side are in it or in the one before."""
    interval = node.interval_from_first
    epoch = node.epochs[side]
    if epoch.type is GsqlType.TIMESTAMP:
        epoch = call("ts_to_int", epoch)
    if side != first_side(node.kind):
        epoch = call("sub_int", epoch, Literal(interval.least, GsqlType.INT))
    # Rounded down: else the bucket around zero would be nearly twice as wide as the others.
    return call("floor_div", epoch, Literal(interval.width + 1, GsqlType.INT))


def _join_of_buckets(node: JoinNode, sources: Sources) -> str:
    """Return the text of a join of equal buckets, which finds the pairs of an interval join."""
    return equal_join.lower(_bucketed(node), replace(sources, rows=_with_buckets(node, sources)))


def _bucketed(node: JoinNode) -> JoinNode:
    """Return ``node`` as a join of equal buckets; those of the second side are in ``BUCKET``."""
    first, second = first_side(node.kind), 1 - first_side(node.kind)
    epochs = {
        first: bucket_of(node, first),
        second: Column(BUCKET, GsqlType.INT, is_nullable=True, input=second),
    }
    return replace(node, epochs=(epochs[_LEFT], epochs[_RIGHT]), interval=None)


def _with_buckets(node: JoinNode, sources: Sources) -> tuple[str, ...]:
    """Return the rows of both sides, those of the second once for each of their two buckets."""
    second = 1 - first_side(node.kind)
    bucket = to_sql(of_input(bucket_of(node, second), 0), column_leaf)
    both = f"explode(array({bucket}, {bucket} - 1L)) AS {quote(BUCKET)}"
    rows = list(sources.rows)
    rows[second] = f"(SELECT *, {both} FROM {sources.rows[second]})"
    return tuple(rows)


def _at_home(node: JoinNode, side: int, sources: Sources) -> str:
    """Return the rows of a side that, if they are alone, are answered with ``sources.epochs``."""
    low, high = (bound + home_of(node, side) for bound in sources.epochs)
    inside = condition(node.epochs[side], low, high, with_nulls=True)
    source = sources.rows[side]
    return f"(SELECT * FROM {source} WHERE {inside})" if inside else source
