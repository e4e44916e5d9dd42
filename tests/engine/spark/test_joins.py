"""Joins of random rows against nested loops, in one step and in many, through crashes."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.golden.driver import Job, Variation
from tests.support.long_form import cases

from gscope.engine.spark import evaluation, task_planner
from gscope.engine.spark.staging.outputs import Outputs
from gscope.engine.watermarks import release_size
from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.expressions.expressions import Column, Expression, Literal, NamedExpression
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import INCREASING, GsqlType
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.program import JoinNode, Lfta, Program, QueryInput, StreamInput
from gscope.queries.streams.messages import (
    Batch,
    EndOfStream,
    Extent,
    Heartbeat,
    Message,
    Punctuation,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from gscope.engine.storage.commits import Output
    from gscope.queries.expressions.expressions import PacketField, Value

pytestmark = pytest.mark.spark

Row = tuple["int | None", ...]

SCHEMA = Schema(
    (
        ColumnSchema("t", GsqlType.INT, ordering=INCREASING),
        ColumnSchema("k", GsqlType.INT, is_nullable=True),
        ColumnSchema("v", GsqlType.INT),
    )
)
KINDS = (JoinKind.INNER, JoinKind.LEFT_OUTER, JoinKind.RIGHT_OUTER, JoinKind.OUTER)


def column(name: str, side: int) -> Column:
    return Column(name, GsqlType.INT, SCHEMA[name].is_nullable, side)


def number(value: int) -> Literal:
    return Literal(value, GsqlType.INT)


def as_float(name: str, side: int) -> Expression:
    return call("int_to_float", column(name, side))


def root(side: int) -> Expression:
    """Something that Spark has to ask Python for."""
    return call("floor_float", call("sqrt", as_float("v", side)))


def lfta(name: str, *interfaces: str) -> Lfta:
    return Lfta(name, name, "PKT", interfaces, None, (), None, (), (), SCHEMA)


@dataclass(frozen=True)
class Case:
    """A join and the way its answer is found without one."""

    kind: JoinKind
    epochs: tuple[Expression, Expression] = (column("t", 0), column("t", 1))
    keys: tuple[tuple[Expression, Expression], ...] = ((column("k", 0), column("k", 1)),)
    predicates: tuple[Expression | None, Expression | None] = (None, None)
    residual: Expression | None = None
    lftas: tuple[str, str] = ("left", "right")

    def node(self) -> JoinNode:
        epoch = call("coalesce", *self.epochs)
        columns = [NamedExpression("e", epoch)]
        columns += [
            NamedExpression(f"{name}{side}", column(name, side))
            for side in range(2)
            for name in SCHEMA.names
        ]
        schema = Schema(
            (
                ColumnSchema("e", GsqlType.INT, ordering=INCREASING),
                *(ColumnSchema(c.name, GsqlType.INT, is_nullable=True) for c in columns[1:]),
            )
        )
        left, right = (StreamInput(name) for name in self.lftas)
        return JoinNode(
            query="joined",
            kind=self.kind,
            inputs=(left, right),
            predicates=self.predicates,
            epochs=self.epochs,
            keys=self.keys,
            residual=self.residual,
            columns=tuple(columns),
            schema=schema,
        )

    def program(self) -> Program:
        lftas = (lfta("left", "a", "b"), lfta("right", "c"))
        used = tuple(each for each in lftas if each.name in self.lftas)
        node = self.node()
        return Program(
            interfaces=("a", "b", "c"),
            lftas=used,
            nodes=(node,),
            results=(("joined", QueryInput("joined")),),
            schemas=(("joined", node.schema),),
        )

    def expected(self, traffic: Traffic) -> Counter[Row]:
        sides = [
            [row for row in traffic.rows(name) if holds(self.predicates[side], side, row)]
            for side, name in enumerate(self.lftas)
        ]
        pairs: list[tuple[Row | None, Row | None]] = []
        matched: tuple[set[int], set[int]] = (set(), set())
        for (i, left), (j, right) in itertools.product(*map(enumerate, sides)):
            if self._match(left, right):
                pairs.append((left, right))
                matched[0].add(i)
                matched[1].add(j)
        if self.kind in (JoinKind.LEFT_OUTER, JoinKind.OUTER):
            pairs += [(row, None) for i, row in enumerate(sides[0]) if i not in matched[0]]
        if self.kind in (JoinKind.RIGHT_OUTER, JoinKind.OUTER):
            pairs += [(None, row) for j, row in enumerate(sides[1]) if j not in matched[1]]
        return Counter(self._output(left, right) for left, right in pairs)

    def _match(self, left: Row, right: Row) -> bool:
        for one, other in ((self.epochs), *self.keys):
            values = value(one, left, right), value(other, left, right)
            if None in values or values[0] != values[1]:
                return False
        return self.residual is None or value(self.residual, left, right) is True

    def _output(self, left: Row | None, right: Row | None) -> Row:
        nothing: Row = (None, None, None)
        left, right = left or nothing, right or nothing
        epoch = value(call("coalesce", *self.epochs), left, right)
        assert epoch is None or isinstance(epoch, int)
        return (epoch, *left, *right)


def value(expression: Expression, *rows: Row) -> Value:
    def leaf(part: Column | PacketField) -> Value:
        assert isinstance(part, Column)
        return rows[part.input][SCHEMA.names.index(part.name)]

    return evaluate(expression, leaf)


def holds(predicate: Expression | None, side: int, row: Row) -> bool:
    nothing: Row = (None, None, None)
    rows = (row, nothing) if side == 0 else (nothing, row)
    return predicate is None or value(predicate, *rows) is True


@dataclass
class Traffic:
    """Random messages of three streams, two of the left side and one of the right."""

    folder: Path
    seed: int = 1
    silent: frozenset[str] = frozenset()
    has_null_times: bool = False
    segments: dict[str, list[Row]] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "log").mkdir(parents=True)
        self._random = random.Random(self.seed)
        logs = [self._stream(name) for name in ("left@a", "left@b", "right@c")]
        while any(logs):
            self.messages.append(self._random.choice([log for log in logs if log]).pop(0))

    def rows(self, lfta: str) -> list[Row]:
        return [
            row
            for path, rows in self.segments.items()
            if path.startswith(f"{lfta}@")
            for row in rows
        ]

    def _stream(self, name: str) -> list[Message]:
        log: list[Message] = []
        bound = 0
        for beat in range(8):
            for _ in range(0 if name in self.silent else self._random.randint(0, 2)):
                log.append(self._batch(name, len(log), bound))
            bound += self._random.randint(0, 5)
            log.append(Heartbeat(name, len(log), beat, 0, (Punctuation("t", bound),)))
        return [*log, EndOfStream(name, len(log))]

    def _time(self, bound: int) -> int | None:
        is_null = self.has_null_times and self._random.random() < 0.3
        return None if is_null else bound + self._random.randint(0, 9)

    def _batch(self, name: str, sequence: int, bound: int) -> Batch:
        rows: list[Row] = [
            (
                self._time(bound),
                self._random.choice((None, 1, 2, 3)),
                self._random.randint(0, 9),
            )
            for _ in range(self._random.randint(1, 8))
        ]
        path = f"{name}-{sequence}"
        self.segments[path] = rows
        columns = dict(zip(SCHEMA.names, map(list, zip(*rows, strict=True)), strict=True))
        table = pa.table({n: pa.array(values, pa.int64()) for n, values in columns.items()})
        pq.write_table(table, self.folder / "log" / path)
        times = [row[0] for row in rows if row[0] is not None]
        extents = (Extent("t", min(times), max(times)),) if times else ()
        return Batch(name, sequence, path, len(rows), 0, extents)


def many(chunks: int) -> Variation:
    """Many small steps, as a small replay evaluates them."""
    return Variation("many", chunks=chunks, interprets_plans=True)


SMALL = 1_000_000
"""Every step is a small one when that many rows are."""

CASES: Mapping[str, Case] = {
    **{kind.name.lower(): Case(kind) for kind in KINDS},
    **{
        f"{kind.name.lower()}_residual": Case(
            kind,
            residual=call("lt", column("v", 0), column("v", 1)),
            predicates=(call("gt", column("v", 0), number(2)), None),
        )
        for kind in KINDS
    },
    "no_keys": Case(JoinKind.OUTER, keys=()),
    "offset": Case(
        JoinKind.OUTER, epochs=(column("t", 0), call("add_int", column("t", 1), number(3)))
    ),
    "divisor": Case(
        JoinKind.OUTER,
        epochs=(
            call("idiv_int", column("t", 0), number(4)),
            call("add_int", call("idiv_int", column("t", 1), number(2)), number(1)),
        ),
        predicates=(None, call("ne", column("v", 1), number(4))),
    ),
    "expression_keys": Case(
        JoinKind.LEFT_OUTER,
        keys=((call("mod_int", column("v", 0), number(3)), column("k", 1)),),
    ),
    "python_keys": Case(
        JoinKind.OUTER,
        keys=((root(0), root(1)),),
        predicates=(call("gt", root(0), Literal(1.0, GsqlType.FLOAT)), None),
    ),
    **{
        f"{kind.name.lower()}_python_residual": Case(
            kind,
            residual=call(
                "lt",
                call("pow", as_float("v", 0), as_float("v", 1)),
                Literal(300.0, GsqlType.FLOAT),
            ),
        )
        for kind in KINDS
    },
    "self": Case(JoinKind.INNER, lftas=("left", "left")),
    "self_shifted": Case(
        JoinKind.OUTER,
        epochs=(column("t", 0), call("add_int", column("t", 1), number(1))),
        lftas=("left", "left"),
    ),
}


IN_LONG_FORM = ("left_outer_python_residual", "right_outer_python_residual")
"""A FULL join with such a residual adds the rows of both sides that are in no pair."""


@pytest.mark.parametrize(
    "name", cases([n for n in CASES if n not in IN_LONG_FORM], long=IN_LONG_FORM)
)
def test_a_join_is_what_nested_loops_find(name: str, spark: SparkSession, tmp_path: Path) -> None:
    case = CASES[name]
    check(case, Traffic(tmp_path / "1"), Variation("at once"), spark, SMALL)
    with mock.patch.object(task_planner, "MAX_TASK_ROWS", -1):
        check(case, Traffic(tmp_path / "2"), Variation("at once"), spark, SMALL)


@contextmanager
def joins_beyond_memory() -> Iterator[None]:
    """Let no input of a join fit into the memory of a task."""
    with (
        mock.patch.object(evaluation, "MAX_TASK_ROWS", 0),
        mock.patch.object(evaluation, "joined_rows", return_value=0),
        mock.patch.object(task_planner, "MAX_TASK_ROWS", -1),
    ):
        yield


@pytest.mark.parametrize("name", ["inner_residual", "outer_residual", "divisor", "self_shifted"])
def test_a_large_step_gives_the_same_pairs(name: str, spark: SparkSession, tmp_path: Path) -> None:
    check(CASES[name], Traffic(tmp_path / "1"), Variation("at once"), spark, 0)
    with joins_beyond_memory():
        check(CASES[name], Traffic(tmp_path / "2"), Variation("many", chunks=4), spark, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_side_that_never_speaks_holds_nothing_up(
    kind: JoinKind, spark: SparkSession, tmp_path: Path
) -> None:
    traffic = Traffic(tmp_path, silent=frozenset({"right@c"}))
    check(Case(kind), traffic, many(10), spark, SMALL)


@pytest.mark.parametrize("chunks", [1, 8])
@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.OUTER])
def test_rows_without_epoch_are_matched_by_none_and_lost_by_none(
    kind: JoinKind, chunks: int, spark: SparkSession, tmp_path: Path
) -> None:
    left, right = (replace(column("t", side), is_nullable=True) for side in range(2))
    case = Case(kind, epochs=(left, right))
    traffic = Traffic(tmp_path, has_null_times=True)
    check(case, traffic, many(chunks), spark, SMALL)


def test_a_backlog_in_pieces_gives_the_same_pairs(spark: SparkSession, tmp_path: Path) -> None:
    with mock.patch.object(release_size, "MAX_STEP_ROWS", 20):
        check(Case(JoinKind.OUTER), Traffic(tmp_path), Variation("at once"), spark, SMALL)


@pytest.mark.parametrize("kind", KINDS)
def test_a_small_step_exchanges_nothing(
    kind: JoinKind, spark: SparkSession, tmp_path: Path
) -> None:
    plans: list[str] = []
    write = Outputs.write

    def spying(
        self: Outputs, result: str, step: int, frame: DataFrame, *, is_small: bool
    ) -> Output | None:
        plans.append(frame._jdf.queryExecution().executedPlan().toString())
        return write(self, result, step, frame, is_small=is_small)

    with (
        mock.patch.object(Outputs, "write", spying),
        mock.patch.object(task_planner, "MAX_TASK_ROWS", -1),
    ):
        check(Case(kind), Traffic(tmp_path), many(3), spark, SMALL)
    assert plans
    assert not [plan for plan in plans if "Exchange" in plan]


@pytest.mark.parametrize(
    ("seed", "name"), [(2, "outer_residual"), (3, "offset"), (4, "self_shifted")]
)
def test_crashes_lose_and_repeat_nothing(
    seed: int, name: str, spark: SparkSession, tmp_path: Path
) -> None:
    traffic = Traffic(tmp_path, seed)
    variation = replace(many(6), crashes=3, seed=seed)
    check(CASES[name], traffic, variation, spark, SMALL)


def check(
    case: Case, traffic: Traffic, variation: Variation, spark: SparkSession, step_size: int
) -> None:
    program = case.program()
    streams = {stream for each in program.lftas for stream in each.streams}
    messages = [m for m in traffic.messages if m.stream in streams]
    with mock.patch.object(evaluation, "SMALL_STEP_ROWS", step_size):
        rows = Job(program, messages, traffic.folder, spark, variation).answers()["joined"]
    got = Counter(tuple(int(text) if text else None for text in row) for row in rows)
    assert got == case.expected(traffic)
