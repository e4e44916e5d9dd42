"""Interval join: rows of two sides whose epochs are at most an interval apart.

The rows of one side, the *first* (the left, of a RIGHT join the right), are answered epoch after epoch,
each with all its partners:

    first side:   low         <= epoch < high             read once
    second side:  low + least <= epoch < high + most      read again by each step that it has partners in
                  (least, most: second - first)

So the watermark is the minimum of the first side's punctuation and of the second's less ``most``, and a
row of the second side waits until the first has passed it by -``least``. No row is held in memory.

A row of the second side of a FULL join that has no partner is answered with the epoch ``row - least``:
its partners are not beyond it, and at most the interval's width below. That far the first side is read
again.

Spark finds pairs by equality. Epochs are numbered in buckets as wide as the interval, so that partners are
in the same bucket or in the next: a row of the second side is put into both, one of the first is in one,
and every pair is found once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gscope.engine.operators.epochs import EpochOperator
from gscope.engine.spark.sql.expressions import column_leaf, quote, to_sql
from gscope.engine.spark.sql.inputs import condition
from gscope.engine.watermarks.release import EpochRange, Side
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Column, Expression, Literal, NamedExpression
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.logical import Interval, first_side
from gscope.queries.plan.trees import of_input

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gscope.engine.operators.base import Work
    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.plan.program import JoinNode
    from gscope.queries.streams.messages import Extent

BUCKET = "$bucket"
"""The column that numbers the bucket of a row."""

_PRESENT = "$present"
_LEFT, _RIGHT = 0, 1


@dataclass(slots=True)
class IntervalJoinOperator(EpochOperator):
    """The running state of an interval join."""

    kind: JoinKind = JoinKind.INNER

    def advance(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Work | None:
        """Release epochs; where one side alone gives no answers, the other is not read for nothing."""
        work = EpochOperator.advance(self, fresh)
        if work is None or self.kind is JoinKind.OUTER:
            return work
        first = first_side(self.kind)
        needed = (first,) if self.kind is not JoinKind.INNER else (_LEFT, _RIGHT)
        if all(work.inputs[side].reads_rows for side in needed):
            return work
        nothing = tuple(
            replace(
                taken, batches=(), partially_read=(), late_below=(), straddles=False, upstream=()
            )
            for taken in work.inputs
        )
        return replace(work, inputs=nothing)


def bookkeeping(node: JoinNode) -> IntervalJoinOperator:
    """The running state of an interval join."""
    interval = _from_first(node)
    first, second = first_side(node.kind), 1 - first_side(node.kind)
    width = interval.width
    windows = {
        first: EpochRange(back=width if node.kind is JoinKind.OUTER else 0),
        second: EpochRange(home=interval.least, ahead=width),
    }
    sides = tuple(Side(epoch, epoch_range=windows[n]) for n, epoch in enumerate(node.epochs))
    return IntervalJoinOperator(node, sides, node.columns, kind=node.kind)


def lower(
    node: JoinNode,
    sources: tuple[str, str],
    epochs: tuple[Bound, Bound],
    equal: Callable[[JoinNode, str, str], str],
) -> str:
    """The Spark SQL text of an interval join, by joins of equal buckets.

    Args:
        node: the join.
        sources: the rows of each side.
        epochs: those that are answered, of the first side: from, and below.
        equal: gives the text of a join of equal epochs.
    """
    if node.kind is not JoinKind.OUTER:
        return equal(bucketed(node), *_with_buckets(node, sources))
    left = replace(node, kind=JoinKind.LEFT_OUTER)
    at_home = (_at_home(node, _LEFT, sources[_LEFT], epochs), sources[_RIGHT])
    matched = equal(bucketed(left), *_with_buckets(left, at_home))
    columns = ", ".join(quote(column.name) for column in node.columns)
    bucket = Column(BUCKET, GsqlType.INT, is_nullable=True, input=_LEFT)
    right = replace(
        node,
        kind=JoinKind.RIGHT_OUTER,
        columns=(*node.columns, NamedExpression(_PRESENT, bucket)),
    )
    at_home = (sources[_LEFT], _at_home(node, _RIGHT, sources[_RIGHT], epochs))
    others = equal(bucketed(right), *_with_buckets(right, at_home))
    return f"{matched} UNION ALL SELECT {columns} FROM ({others}) WHERE {quote(_PRESENT)} IS NULL"


def bucketed(node: JoinNode) -> JoinNode:
    """``node`` as a join of equal buckets; those of the second side are in the column ``BUCKET``."""
    first, second = first_side(node.kind), 1 - first_side(node.kind)
    epochs = {
        first: bucket_of(node, first),
        second: Column(BUCKET, GsqlType.INT, is_nullable=True, input=second),
    }
    return replace(node, epochs=(epochs[_LEFT], epochs[_RIGHT]), interval=None)


def numbered(node: JoinNode) -> JoinNode:
    """``node`` with the bucket of each side as its epoch; those of a pair may differ by one."""
    return replace(node, epochs=(bucket_of(node, _LEFT), bucket_of(node, _RIGHT)))


def home_of(node: JoinNode, side: int) -> int:
    """By how much the epoch of a row of ``side`` without partners is above that it is answered with."""
    return _from_first(node).least if side != first_side(node.kind) else 0


def bucket_of(node: JoinNode, side: int) -> Expression:
    """The bucket of a row; partners of the second side's are in it or in the one before."""
    interval = _from_first(node)
    epoch = node.epochs[side]
    if epoch.type is GsqlType.TIMESTAMP:
        epoch = call("ts_to_int", epoch)
    if side != first_side(node.kind):
        epoch = call("sub_int", epoch, Literal(interval.least, GsqlType.INT))
    # Rounded down: else the bucket around zero would be nearly twice as wide as the others.
    return call("floor_div", epoch, Literal(interval.width + 1, GsqlType.INT))


def _with_buckets(node: JoinNode, sources: tuple[str, str]) -> tuple[str, str]:
    """The rows of both sides, those of the second once for each of their two buckets."""
    second = 1 - first_side(node.kind)
    bucket = to_sql(of_input(bucket_of(node, second), 0), column_leaf)
    both = f"explode(array({bucket}, {bucket} - 1L)) AS {quote(BUCKET)}"
    rows = list(sources)
    rows[second] = f"(SELECT *, {both} FROM {sources[second]})"
    return rows[_LEFT], rows[_RIGHT]


def _at_home(node: JoinNode, side: int, source: str, epochs: tuple[Bound, Bound]) -> str:
    """The rows of a side that are answered, if they are alone, with some epochs of the first."""
    low, high = (bound + home_of(node, side) for bound in epochs)
    inside = condition(node.epochs[side], low, high, with_nulls=True)
    return f"(SELECT * FROM {source} WHERE {inside})" if inside else source


def _from_first(node: JoinNode) -> Interval:
    """The interval of second - first."""
    assert node.interval is not None
    if first_side(node.kind) == _LEFT:
        return node.interval
    return Interval(-node.interval.most, -node.interval.least)
