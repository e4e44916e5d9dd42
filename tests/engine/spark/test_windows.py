"""Windows over kept rows against a plain loop, in many steps, through crashes."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from tests.engine.spark.test_joins import SMALL, Row, Traffic, column, lfta, many
from tests.golden.driver import Job

from gscope.engine.operators import window as window_operator
from gscope.engine.spark import evaluation
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Column, Literal, NamedExpression
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import INCREASING, GsqlType
from gscope.queries.int64 import MAX_INT, MIN_INT
from gscope.queries.plan.program import (
    Aggregate,
    Program,
    QueryInput,
    StreamInput,
)
from gscope.queries.plan.window_node import WindowNode
from gscope.queries.plan.windows.clamp import clamped, limits
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_START
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.windows.window import Window

pytestmark = pytest.mark.spark

INT = GsqlType.INT
OUTPUT = Schema(
    (
        ColumnSchema("w0", INT, ordering=INCREASING),
        ColumnSchema("w1", INT, ordering=INCREASING),
        ColumnSchema("k", INT, is_nullable=True),
        ColumnSchema("n", INT),
        ColumnSchema("s", INT),
    )
)
POSITIVE = call("gt", column("v", 0), Literal(1, INT))


@dataclass(frozen=True)
class Case:
    """A window over the packets' rows, or over the answers of another case.

    Attributes:
        ahead: what is added to the times of rows.
    """

    window: Window
    over: str | None = None
    predicate: Expression | None = None
    ahead: int = 0

    def node(self, name: str) -> WindowNode:
        def of(column: str) -> Column:
            return Column(column, INT, is_nullable=column == "k")

        time, value = ("t", "v") if self.over is None else ("w1", "n")
        inside = {"w0": WINDOW_START, "w1": WINDOW_END}
        total = (of(value),)
        return WindowNode(
            query=name,
            input=StreamInput("left") if self.over is None else QueryInput(self.over),
            predicate=self.predicate,
            window=self.window,
            on=clamped(call("add_int", of(time), Literal(self.ahead, INT)), self.window),
            unit_ns=None,
            slices=None,
            keys=(NamedExpression("k", of("k")),),
            aggregates=(
                Aggregate("n", "count", (), (), INT, is_nullable=False),
                Aggregate("s", "sum", total, (), INT, is_nullable=False),
            ),
            having=None,
            columns=tuple(
                NamedExpression(c, Column(inside.get(c, c), INT, is_nullable=c == "k"))
                for c in OUTPUT.names
            ),
            schema=OUTPUT,
        )

    def expected(self, rows: Iterable[Row]) -> list[Row]:
        groups: dict[tuple[int, int | None], list[int]] = defaultdict(list)
        for time, key, value in rows:
            assert time is not None
            assert value is not None
            least, greatest = limits(self.window)
            time = max(least, min(time + self.ahead, greatest))
            near = self.window.first_ending_after(time)
            if self.predicate is None or value > 1:
                for at in range(near - 60, near + 60):
                    if self.window.start(at) <= time < self.window.end(at):
                        groups[at, key].append(value)
        return [
            (self.window.start(at), self.window.end(at), key, len(values), sum(values))
            for (at, key), values in groups.items()
        ]


CASES = {
    "overlapping": Case(SlidingWindow(18, 5)),
    "tumbling": Case(SlidingWindow(4, 4), predicate=POSITIVE),
    "hopping": Case(SlidingWindow(2, 7)),
    "long": Case(SlidingWindow(100, 3)),
    "slices": Case(RepeatedSlices((2, 5, 1))),
    "twice": Case(SlidingWindow(23, 9), over="overlapping"),
    "late": Case(SlidingWindow(70, 30), ahead=MAX_INT - 500),
    "early": Case(SlidingWindow(3, 40), ahead=MIN_INT),
    "late slices": Case(RepeatedSlices((20, 50, 10)), ahead=MAX_INT - 500),
}


def test_windows_over_rows_are_what_a_loop_finds(spark: SparkSession, tmp_path: Path) -> None:
    nodes = tuple(case.node(name) for name, case in CASES.items())
    program = Program(
        interfaces=("a", "b", "c"),
        lftas=(lfta("left", "a", "b"),),
        nodes=nodes,
        results=tuple((node.query, QueryInput(node.query)) for node in nodes),
        schemas=tuple((node.query, node.schema) for node in nodes),
    )
    variation = replace(many(6), crashes=3)
    traffic = Traffic(tmp_path, 2, silent=frozenset({"right@c"}))
    messages = [m for m in traffic.messages if m.stream.startswith("left@")]
    with (
        mock.patch.object(evaluation, "SMALL_STEP_ROWS", SMALL),
        mock.patch.object(window_operator, "MAX_STEP_ANSWERS", 200),
    ):
        found = Job(program, messages, traffic.folder, spark, variation).answers()
    expected: dict[str, list[Row]] = {}
    for name, case in CASES.items():
        rows = traffic.rows("left")
        if case.over is not None:
            rows = [(end, key, n) for _, end, key, n, _ in expected[case.over]]
        expected[name] = case.expected(rows)
        got = Counter(tuple(int(text) if text else None for text in row) for row in found[name])
        assert got == Counter(expected[name]), name
        ends = [int(row[1]) for row in found[name]]
        assert ends == sorted(ends)
