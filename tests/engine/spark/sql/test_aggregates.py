"""Every aggregate means the same to Spark as to the catalog.

It does so over rows and over any partials of them.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_, xor
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.spark.sql.test_two_levels import from_spark, same, to_spark

from gscope.engine.spark.sql.aggregates import aggregate_sql
from gscope.engine.spark.sql.expressions import SPARK_TYPES, column_leaf, quote, to_sql
from gscope.engine.spark.sql.finishers import register_finishers
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.catalog.scalar.logic import order_key
from gscope.queries.expressions.expressions import Column, Expression, Literal, PacketField
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.logical import AggregateCall
from gscope.queries.plan.program import Aggregate
from gscope.queries.plan.split.border import Border
from gscope.queries.plan.split.partials import Partials, can_run_low

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from gscope.queries.expressions.expressions import Value

pytestmark = pytest.mark.spark

Row = dict[str, Any]
GREATEST = (1 << 63) - 1
V4 = 0xFFFF << 32
POOLS: dict[GsqlType, tuple[Value, ...]] = {
    GsqlType.BOOL: (True, False, None),
    GsqlType.INT: (0, 1, -1, 2, 2, 7, 1500, 1 << 31, (1 << 32) - 1, -(1 << 31), None),
    GsqlType.FLOAT: (0.0, -0.0, 0.5, 1.5, -2.5, 1e300, math.nan, math.inf, None),
    GsqlType.STRING: (b"", b"a", b"GET /x", b"\x00\xff\xe9", b"Z" * 40, None),
    GsqlType.IP: (V4 | 0x0A000001, V4 | 0xC0A80101, 1, 0xFE80 << 112 | 5, (1 << 128) - 1, None),
    GsqlType.MAC: (0, 0xFFFFFFFFFFFF, 0x020000000001, None),
    GsqlType.TIMESTAMP: (0, 1_700_000_000_123_456_789, GREATEST, None),
    GsqlType.INTERVAL: (1, 5_000_000_000, -3, None),
}
PLAIN_FLOATS = (0.0, -0.0, 0.5, 1.5, -2.5, 3e7, None)
HUGE = (1 << 62, -(1 << 63), GREATEST, 3, None)
CONSTANTS: dict[str, tuple[Literal, ...]] = {
    "quantile": (Literal(0.3, GsqlType.FLOAT),),
    "approx_top_k": (Literal(2, GsqlType.INT),),
}
FOLDS = {PartialOp.OR: or_, PartialOp.AND: and_, PartialOp.XOR: xor}
GROUPS = 12


def rows() -> list[Row]:
    """Groups of one to some tuples; the last ones of common numbers, one of extreme ones."""
    chance = random.Random(11)
    made = []
    for group in range(GROUPS):
        for _ in range(chance.choice((1, 2, 5, 30))):
            row: Row = {"g": group, "time_ns": chance.randrange(6)}
            for kind, pool in POOLS.items():
                values = PLAIN_FLOATS if kind is GsqlType.FLOAT and group > GROUPS // 3 else pool
                row[kind.value] = chance.choice(values)
            row["HUGE"] = chance.choice(HUGE)
            made.append(row)
    return made


DATA = rows()


@dataclass(frozen=True)
class Asked:
    """An aggregate of a column; ``kind`` is the column's type."""

    function: str
    column: str
    kind: GsqlType

    def call(self, *, low: bool) -> AggregateCall:
        """Over packet fields (low) or columns."""
        entry = AGGREGATES[self.function]

        def leaf(name: str, kind: GsqlType, *, is_nullable: bool) -> Expression:
            return (PacketField if low else Column)(name, kind, is_nullable)

        arguments: tuple[Expression, ...] = (leaf(self.column, self.kind, is_nullable=True),)
        arguments += CONSTANTS.get(self.function, ())
        if entry.is_ordered:
            arguments += (leaf("time_ns", GsqlType.INT, is_nullable=False),)
        if entry.knows_type:
            arguments += (Literal(self.kind.value.encode(), GsqlType.STRING),)
        result = entry.result_type(arguments)
        return AggregateCall("x", self.function, arguments, result, is_nullable=True)

    def expected(self) -> dict[int, Value]:
        """By the catalog."""
        entry = AGGREGATES[self.function]
        groups = defaultdict(list)
        for row in DATA:
            value = row[self.column]
            groups[row["g"]].append((value, row["time_ns"]) if entry.is_ordered else value)
        constants = [a.value for a in self.call(low=True).arguments[1:] if isinstance(a, Literal)]
        return {group: entry.evaluate(values, *constants) for group, values in groups.items()}


def asked() -> Iterator[Asked]:
    for name, entry in AGGREGATES.items():
        for kind in POOLS:
            if kind in entry.argument_types:
                yield Asked(name, kind.value, kind)
        if GsqlType.INT in entry.argument_types:
            yield Asked(name, "HUGE", GsqlType.INT)


ASKED = list(asked())
LOW_KINDS = {GsqlType.BOOL, GsqlType.INT, GsqlType.FLOAT, GsqlType.IP}
LOW = [
    one
    for one in ASKED
    if one.kind in LOW_KINDS and one.column != "HUGE" and can_run_low(one.call(low=True))
]


def named(one: Asked) -> str:
    return f"{one.function}-{one.column}"


def check(one: Asked, answer: dict[str, list[Any]], column: str) -> list[str]:
    expected, kind = one.expected(), one.call(low=False).type
    return [
        f"{named(one)} of group {group}: {got!r}, not {expected[group]!r}"
        for group, got in zip(answer["g"], answer[column], strict=True)
        if not same(from_spark(got, kind), expected[group])
    ]


def test_over_rows_spark_computes_what_the_catalog_says(spark: SparkSession) -> None:
    kinds = {kind.value: kind for kind in POOLS} | {"HUGE": GsqlType.INT}
    kinds |= dict.fromkeys(("g", "time_ns"), GsqlType.INT)
    ddl = ", ".join(f"{quote(name)} {SPARK_TYPES[kind]}" for name, kind in kinds.items())
    table = [tuple(to_spark(row[name], kind) for name, kind in kinds.items()) for row in DATA]
    spark.createDataFrame(table, ddl).repartition(2).createOrReplaceTempView("aggregated")
    calls = [one.call(low=False) for one in ASKED]
    made = [Aggregate(c.name, c.function, c.arguments, (), c.type, c.is_nullable) for c in calls]
    wrong = []
    register_finishers(spark, made)
    # In one query of all, Spark would expand every row for every DISTINCT.
    for start in range(0, len(made), 30):
        part = range(start, min(start + 30, len(made)))
        texts = [
            f"{aggregate_sql(made[n], [to_sql(a, column_leaf) for a in made[n].arguments], quote)}"
            f" AS x{n}"
            for n in part
        ]
        query = f"SELECT g, {', '.join(texts)} FROM aggregated GROUP BY g"
        answer = spark.sql(query).toArrow().to_pydict()
        wrong += [line for n in part for line in check(ASKED[n], answer, f"x{n}")]
    assert not wrong, "\n".join(wrong[:30])


def fold(op: PartialOp, values: list[Any]) -> Any:
    """A partial over the values of some tuples."""
    known = [value for value in values if value is not None]
    if op is PartialOp.COUNT:
        return len(known)
    if not known:
        return None
    if op is PartialOp.SUM:
        return wrap(sum(known))
    if op in (PartialOp.MIN, PartialOp.MAX):
        return (min if op is PartialOp.MIN else max)(known, key=order_key)
    return reduce(FOLDS[op], known)


@pytest.mark.parametrize("one", LOW, ids=named)
def test_over_partials_spark_computes_what_the_catalog_says(
    one: Asked, spark: SparkSession
) -> None:
    chance = random.Random(one.function)
    border = Border()
    partials = Partials(border)
    aggregate = partials.add(one.call(low=True))
    joined = list(border.shipped)
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in DATA:
        values = [_value(e, row) for e in joined]
        # Pieces are what evictions and interfaces make of a group.
        key = (row["g"], chance.randrange(3), *(order_key(value) for value in values))
        groups[key].append(row | {"joined": values})
    kinds = [GsqlType.INT, *(e.type for e in joined), *(p.type for p in partials.made)]
    table = []
    for (group, *_), members in groups.items():
        folded = [
            fold(p.op, [_value(p.argument, member) for member in members]) for p in partials.made
        ]
        line = [group, *members[0]["joined"], *folded]
        table.append(tuple(to_spark(v, kind) for v, kind in zip(line, kinds, strict=True)))
    names = ["g", *border.shipped.values(), *(p.name for p in partials.made)]
    ddl = ", ".join(f"{quote(n)} {SPARK_TYPES[kind]}" for n, kind in zip(names, kinds, strict=True))
    spark.createDataFrame(table, ddl).createOrReplaceTempView("partial")
    register_finishers(spark, [aggregate])
    text = aggregate_sql(aggregate, [to_sql(a, column_leaf) for a in aggregate.arguments], quote)
    answer = spark.sql(f"SELECT g, {text} AS x FROM partial GROUP BY g").toArrow().to_pydict()
    wrong = check(one, answer, "x")
    assert not wrong, "\n".join(wrong[:30])


def _value(argument: Expression | None, row: Row) -> Any:
    return True if argument is None else evaluate(argument, lambda leaf: row[leaf.name])
