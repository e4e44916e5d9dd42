"""Interval joins of random rows against nested loops, in one step and in many, through crashes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from tests.engine.spark.test_joins import (
    CASES,
    KINDS,
    SCHEMA,
    SMALL,
    Case,
    Row,
    Traffic,
    as_float,
    check,
    column,
    joins_beyond_memory,
    many,
    number,
    value,
)
from tests.golden.driver import Variation
from tests.support.long_form import cases, pairs

from gscope.engine.spark import task_planner
from gscope.engine.watermarks import release_size
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Expression, Literal, NamedExpression
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.logical import Interval

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gscope.queries.plan.program import JoinNode

pytestmark = pytest.mark.spark

AHEAD, AROUND, BEHIND = Interval(0, 4), Interval(-3, 2), Interval(-9, -4)


@dataclass(frozen=True)
class IntervalCase(Case):
    """A join of times that are near each other."""

    interval: Interval = AHEAD
    more: Expression | None = None

    def node(self) -> JoinNode:
        near = self._near()
        columns = tuple(
            NamedExpression(f"{name}{side}", column(name, side))
            for side in range(2)
            for name in SCHEMA.names
        )
        schema = Schema(
            tuple(ColumnSchema(c.name, GsqlType.INT, is_nullable=True) for c in columns)
        )
        return replace(
            super().node(),
            interval=self.interval,
            residual=near if self.more is None else call("and", near, self.more),
            columns=columns,
            schema=schema,
        )

    def _near(self) -> Expression:
        left, right = self.epochs
        add, unit = "add_int", GsqlType.INT
        if left.type is GsqlType.TIMESTAMP:
            add, unit = "ts_add", GsqlType.INTERVAL
        least, most = (
            call(add, left, Literal(end, unit)) for end in (self.interval.least, self.interval.most)
        )
        return call("and", call("ge", right, least), call("le", right, most))

    def _match(self, left: Row, right: Row) -> bool:
        for one, other in self.keys:
            values = value(one, left, right), value(other, left, right)
            if None in values or values[0] != values[1]:
                return False
        first, second = (value(epoch, left, right) for epoch in self.epochs)
        if not isinstance(first, int) or not isinstance(second, int):
            return False
        if not self.interval.least <= second - first <= self.interval.most:
            return False
        return self.more is None or value(self.more, left, right) is True

    def _output(self, left: Row | None, right: Row | None) -> Row:
        nothing: Row = (None, None, None)
        return (*(left or nothing), *(right or nothing))


POWER = call("pow", as_float("v", 0), as_float("v", 1))
BELOW_300 = call("lt", POWER, Literal(300.0, GsqlType.FLOAT))
"""Spark has to ask Python for it."""

INTERVALS: dict[str, IntervalCase] = {
    **{
        f"{kind.name.lower()}_{name}": IntervalCase(kind, interval=interval)
        for kind in KINDS
        for name, interval in (("ahead", AHEAD), ("around", AROUND), ("behind", BEHIND))
    },
    **{
        f"{kind.name.lower()}_residual": IntervalCase(
            kind,
            more=call("lt", column("v", 0), column("v", 1)),
            predicates=(call("gt", column("v", 0), number(2)), None),
        )
        for kind in KINDS
    },
    **{
        f"{kind.name.lower()}_python_residual": IntervalCase(kind, interval=AROUND, more=BELOW_300)
        for kind in KINDS
    },
    "no_keys": IntervalCase(JoinKind.OUTER, keys=(), interval=Interval(1, 3)),
    "one_value": IntervalCase(JoinKind.OUTER, interval=Interval(2, 2)),
    "divisor": IntervalCase(
        JoinKind.OUTER, epochs=CASES["divisor"].epochs, interval=Interval(-1, 1)
    ),
    **{
        f"{kind.name.lower()}_zero": IntervalCase(
            kind,
            interval=AROUND,
            epochs=(
                call("int_to_ts", call("sub_int", column("t", 0), number(20))),
                call("int_to_ts", call("sub_int", column("t", 1), number(20))),
            ),
        )
        for kind in (JoinKind.INNER, JoinKind.OUTER)
    },
    "wide": IntervalCase(JoinKind.OUTER, interval=Interval(-1000, 1000)),
    "self": IntervalCase(JoinKind.LEFT_OUTER, lftas=("left", "left"), interval=Interval(1, 5)),
}
"""The names say how far the right side is from the left."""


IN_LONG_FORM = (
    *("inner_around", "inner_behind", "left_outer_ahead", "left_outer_behind"),
    *("right_outer_ahead", "right_outer_around", "inner_residual", "left_outer_residual"),
    *("left_outer_python_residual", "right_outer_python_residual"),
)
"""A FULL join is a LEFT join and the rest of a RIGHT join: those of it try most of these, too."""


@pytest.mark.parametrize(
    "name", cases([n for n in INTERVALS if n not in IN_LONG_FORM], long=IN_LONG_FORM)
)
def test_an_interval_join_is_what_nested_loops_find(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    case = INTERVALS[name]
    # Each step of an outer join that asks Python makes a dozen exchanges.
    asks_python = case.more is BELOW_300
    check(case, Traffic(tmp_path / "1"), Variation("at once"), spark, SMALL)
    check(case, Traffic(tmp_path / "2", seed=2), many(4 if asks_python else 12), spark, SMALL)
    with mock.patch.object(task_planner, "MAX_TASK_ROWS", -1):
        # In SQL a step takes ten times as long as in a task.
        check(case, Traffic(tmp_path / "3", seed=2), many(2 if asks_python else 3), spark, SMALL)


@pytest.mark.parametrize("name", ["inner_residual", "right_outer_around", "outer_residual"])
def test_a_large_step_gives_the_same_pairs(name: str, spark: SparkSession, tmp_path: Path) -> None:
    check(INTERVALS[name], Traffic(tmp_path / "1"), Variation("at once"), spark, 0)
    with joins_beyond_memory():
        check(INTERVALS[name], Traffic(tmp_path / "2"), Variation("many", chunks=4), spark, 0)


@pytest.mark.parametrize(
    ("kind", "silent"), pairs(KINDS, ["left@a", "right@c"], always=0, name=str)
)
def test_a_side_that_never_speaks_holds_nothing_up(
    kind: JoinKind, silent: str, spark: SparkSession, tmp_path: Path
) -> None:
    traffic = Traffic(tmp_path, silent=frozenset({silent}))
    case = IntervalCase(kind, interval=AROUND)
    check(case, traffic, many(10), spark, SMALL)


@pytest.mark.parametrize(("kind", "chunks"), pairs(KINDS, [1, 8], always=0, name=str))
def test_rows_without_epoch_are_matched_by_none_and_lost_by_none(
    kind: JoinKind, chunks: int, spark: SparkSession, tmp_path: Path
) -> None:
    left, right = (replace(column("t", side), is_nullable=True) for side in range(2))
    case = IntervalCase(kind, epochs=(left, right), interval=AROUND)
    traffic = Traffic(tmp_path, has_null_times=True)
    check(case, traffic, many(chunks), spark, SMALL)


@pytest.mark.parametrize("name", ["inner_around", "outer_ahead", "right_outer_around", "wide"])
def test_a_backlog_in_pieces_gives_the_same_pairs(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    with mock.patch.object(release_size, "MAX_STEP_ROWS", 20):
        check(INTERVALS[name], Traffic(tmp_path), Variation("at once"), spark, SMALL)


@pytest.mark.parametrize(
    ("seed", "name"),
    [(2, "outer_around"), (3, "left_outer_ahead"), (4, "right_outer_behind"), (5, "self")],
)
def test_crashes_lose_and_repeat_nothing(
    seed: int, name: str, spark: SparkSession, tmp_path: Path
) -> None:
    traffic = Traffic(tmp_path, seed)
    variation = replace(many(8), crashes=3, seed=seed)
    check(INTERVALS[name], traffic, variation, spark, SMALL)
