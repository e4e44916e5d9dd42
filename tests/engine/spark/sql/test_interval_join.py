"""Buckets of interval joins: partners are in the same or in neighbouring ones, all equally wide."""

from __future__ import annotations

from collections import Counter

import pytest

from gscope.engine.spark.sql.interval_join import bucket_of
from gscope.engine.spark.tasks.join_task import is_plain_join
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.expressions.expressions import Column, NamedExpression
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.logical import Interval
from gscope.queries.plan.program import JoinNode, StreamInput

TIMES = range(-60, 60)
"""Below zero are the times of clocks that were never set."""


def join(kind: JoinKind, of_time: GsqlType, interval: Interval) -> JoinNode:
    left, right = (Column("t", of_time, is_nullable=False, input=side) for side in range(2))
    return JoinNode(
        query="q",
        kind=kind,
        inputs=(StreamInput("a"), StreamInput("b")),
        predicates=(None, None),
        epochs=(left, right),
        keys=(),
        residual=None,
        columns=(NamedExpression("t", left),),
        schema=Schema((ColumnSchema("t", of_time),)),
        interval=interval,
    )


def bucket(node: JoinNode, side: int, time: int) -> int:
    number = evaluate(bucket_of(node, side), lambda _: time)
    assert isinstance(number, int)
    return number


@pytest.mark.parametrize("interval", [Interval(0, 4), Interval(-3, 2), Interval(-9, -4)])
@pytest.mark.parametrize("of_time", [GsqlType.INT, GsqlType.TIMESTAMP])
@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.RIGHT_OUTER])
def test_buckets_around_zero_are_as_wide_as_all_others(
    kind: JoinKind, of_time: GsqlType, interval: Interval
) -> None:
    node = join(kind, of_time, interval)
    first = 1 if kind is JoinKind.RIGHT_OUTER else 0
    for left in TIMES:
        for right in range(left + interval.least, left + interval.most + 1):
            times = (left, right)
            of_first, of_second = (bucket(node, side, times[side]) for side in (first, 1 - first))
            assert of_second - of_first in (0, 1)
    for side in range(2):
        sizes = Counter(bucket(node, side, time) for time in TIMES)
        inner = [sizes[number] for number in sorted(sizes)[1:-1]]
        assert set(inner) == {interval.width + 1}


def test_tasks_join_by_timestamps_as_by_seconds() -> None:
    seconds = join(JoinKind.INNER, GsqlType.INT, Interval(0, 4))
    assert is_plain_join(seconds)
    instants = join(JoinKind.INNER, GsqlType.TIMESTAMP, Interval(0, 4 * 10**9))
    assert is_plain_join(instants)
