"""Every function and operator means the same to Spark as to the catalog, on values that hurt."""

from __future__ import annotations

import itertools
import math
import random
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.shared_spark import plans_interpreted

from gscope.engine.spark.sql.constant_tables import MOST_IN_TEXT
from gscope.engine.spark.sql.expressions import SPARK_TYPES, column_leaf, quote, to_sql
from gscope.engine.spark.sql.udf import register_functions
from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.scalar.tables import pack_table
from gscope.queries.expressions.expressions import Column, Expression, Literal, PacketField, Value
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

    from gscope.queries.catalog.scalar.entry import FunctionEntry

pytestmark = pytest.mark.spark

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
V4, MAPPED = 0xFFFF << 32, 0xFFFE << 32
VALUES: dict[GsqlType, tuple[Value, ...]] = {
    GsqlType.BOOL: (True, False, None),
    GsqlType.INT: (0, 1, -1, 2, 7, -7, 63, 64, 65, 1 << 32, LEAST, LEAST + 1, GREATEST, None),
    GsqlType.FLOAT: (
        *(0.0, -0.0, 0.5, -0.5, 1.5, -2.5, 1e300, -1e300, 1e-300, 9.3e18, -9.3e18, 1e15 + 0.5),
        *(math.nan, math.inf, -math.inf, None),
    ),
    GsqlType.STRING: (b"", b"a", b"GET /x", b"get", b"\x00\xff\xe9", b"12", b"-7 ", b"::1", None),
    GsqlType.IP: (
        *(V4 | 0x0A000001, V4 | 0xC0A80101, V4, 1, 0xFE80 << 112 | 5, (1 << 128) - 1),
        *(MAPPED | 0x0A000001, 1 << 64 | V4 | 5, None),
    ),
    GsqlType.MAC: (0, 0xFFFFFFFFFFFF, 0x020000000001, None),
    GsqlType.TIMESTAMP: (0, 1_700_000_000_123_456_789, 1, LEAST, GREATEST, None),
    GsqlType.INTERVAL: (1, 5_000_000_000, -3, 0, GREATEST, None),
}
LITERALS: dict[str, tuple[Value, ...]] = {
    "prefix": (24, 64),
    "in_net": (V4 | 0x0A000000, 104),
    "like": (b"%e_",),
    "str_regex_match": (b"[Gg]e?",),
    "str_extract_regex": (b"[0-9A-Z]+",),
}
ROWS = 60
COLUMNS = [(kind, place) for kind in VALUES for place in range(3)]


def name(kind: GsqlType, place: int) -> str:
    return f"{kind.value.lower()}{place}"


def rows() -> list[dict[str, Value]]:
    """Each value of each type at least once, otherwise by chance."""
    chance = random.Random(4)
    made = []
    for number in range(ROWS):
        row: dict[str, Value] = {}
        for kind, place in COLUMNS:
            pool = VALUES[kind]
            is_turn = number < len(pool) and place == 0
            row[name(kind, place)] = pool[number] if is_turn else chance.choice(pool)
        made.append(row)
    return made


def calls(entry: FunctionEntry) -> Iterator[Expression]:
    """A call of the function for every type it takes."""
    kinds = list(VALUES) if any(p.type is None for p in entry.parameters) else [GsqlType.INT]
    for kind in kinds:
        places = itertools.count()
        if entry.name == "in_table":
            yield from tables_of(kind)
            continue
        literals = iter(LITERALS.get(entry.name, ()))
        arguments: list[Expression] = []
        for parameter in entry.parameters:
            wanted = parameter.type or kind
            if parameter.is_literal:
                value = next(literals, VALUES[wanted][1])
                arguments.append(Literal(value, wanted))
            else:
                place = next(places)
                arguments.append(Column(name(wanted, place % 3), wanted, is_nullable=True))
        yield call(entry.name, *arguments)


def tables_of(kind: GsqlType) -> Iterator[Expression]:
    """Tests in a table that is written as text, and in one that is too long for that."""
    column = Column(name(kind, 0), kind, is_nullable=True)
    few = VALUES[kind][::2]
    more: dict[GsqlType, Iterable[Value]] = {
        GsqlType.FLOAT: (n + 0.25 for n in range(MOST_IN_TEXT + 1)),
        GsqlType.STRING: (b"%d" % n for n in range(MOST_IN_TEXT + 1)),
    }
    many = more.get(kind, () if kind is GsqlType.BOOL else range(100, MOST_IN_TEXT + 101))
    for values in (few, (*few, *many)):
        table = pack_table(values, kind)
        yield call("in_table", column, Literal(table, GsqlType.STRING))


EXPRESSIONS = [
    made for entry in FUNCTIONS.values() if not entry.is_high_only for made in calls(entry)
]


def to_spark(value: Value, kind: GsqlType) -> Any:
    if value is None:
        return None
    if kind is GsqlType.STRING:
        assert isinstance(value, bytes)
        return value.decode("iso-8859-1")
    return int(value).to_bytes(16) if kind is GsqlType.IP else value


def from_spark(value: Any, kind: GsqlType) -> Value:
    if value is None:
        return None
    if kind is GsqlType.STRING:
        return str(value).encode("iso-8859-1")
    return int.from_bytes(bytes(value)) if kind is GsqlType.IP else value


def same(left: Value, right: Value) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    return left == right


@pytest.fixture(params=["compiled", "interpreted"])
def any_spark(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The session as it is for large inputs, and as it is for small ones."""
    with plans_interpreted(spark) if request.param == "interpreted" else nullcontext():
        yield spark


def test_spark_computes_what_the_catalog_says(any_spark: SparkSession) -> None:
    spark = any_spark
    data = rows()
    ddl = ", ".join(f"{name(kind, place)} {SPARK_TYPES[kind]}" for kind, place in COLUMNS)
    table = [
        tuple(to_spark(row[name(kind, place)], kind) for kind, place in COLUMNS) for row in data
    ]
    spark.createDataFrame(table, ddl).coalesce(1).createOrReplaceTempView("two_levels")
    register_functions(spark, EXPRESSIONS)
    texts = [f"{to_sql(e, column_leaf)} AS {quote(f'x{i}')}" for i, e in enumerate(EXPRESSIONS)]
    answer = spark.sql(f"SELECT {', '.join(texts)} FROM two_levels").toArrow().to_pydict()
    wrong = []
    for index, expression in enumerate(EXPRESSIONS):
        for row, got in zip(data, answer[f"x{index}"], strict=True):

            def leaf(part: Column | PacketField, row: dict[str, Value] = row) -> Value:
                return row[part.name]

            want = evaluate(expression, leaf)
            if not same(want, from_spark(got, expression.type)):
                wrong.append(f"{to_sql(expression, column_leaf)}: {got!r}, not {want!r}: {row}")
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(line[:400] for line in wrong[:40])
