"""The partition of a row as Spark computes it is that of the other forms, for every type."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.queries.plan.partitioning.value_pools import POOLS
from tests.support.shared_spark import plans_interpreted

from gscope.engine.spark.sql.expressions import quote
from gscope.engine.spark.sql.partitions import partition_sql
from gscope.engine.spark.sql.udf import register_functions
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Column, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.partitioning.partition_hash import partition_of_values
from gscope.queries.plan.partitioning.value_columns import partitions_of_rows
from gscope.queries.plan.program_partitioning import PartitionMember

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gscope.queries.expressions.expressions import Expression

pytestmark = pytest.mark.spark

ROWS = 80
IP, INT = GsqlType.IP, GsqlType.INT


def column(kind: GsqlType, place: int = 0, *, is_nullable: bool = True) -> Column:
    return Column(f"{kind.value.lower()}{place}", kind, is_nullable)


def rows() -> pa.Table:
    """Each value at least once, by chance otherwise; as segments and outputs store columns."""
    chance = random.Random(8)
    columns = {}
    for kind, pool in POOLS.items():
        for place in range(2):
            values = [pool[n] if n < len(pool) else chance.choice(pool) for n in range(ROWS)]
            if place:
                chance.shuffle(values)
            if kind is IP:
                texts = [None if v is None else v.to_bytes(16) for v in values]
                made = pa.array(texts, pa.binary(16))
            else:
                made = pa.array(values, pa.bool_() if kind is GsqlType.BOOL else pa.int64())
            columns[f"{kind.value.lower()}{place}"] = made
    columns["port"] = pa.array([chance.randrange(65536) for _ in range(ROWS)], pa.int32())
    return pa.table(columns)


def member(*values: Expression) -> PartitionMember:
    return PartitionMember(values)


MASKED = call("ip_mask", column(IP), Literal(0xFFFFFF00, INT))
SETS: tuple[tuple[PartitionMember, ...], ...] = (
    *((member(column(kind)),) for kind in POOLS),
    *((member(column(kind), column(kind, 1)),) for kind in POOLS),
    (member(MASKED), member(Column("port", INT, is_nullable=False))),
    (member(call("idiv_int", column(INT), Literal(7, INT))),),
    (member(column(IP), column(IP, 1)), member(column(INT)), member(column(GsqlType.MAC))),
)


@pytest.mark.parametrize("partitions", [2, 3, 64])
def test_spark_numpy_and_single_rows_agree(
    spark: SparkSession, tmp_path: Path, partitions: int
) -> None:
    register_functions(spark, [value for each in SETS for part in each for value in part.values])
    table = rows()
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path, store_schema=False)
    texts = (partition_sql(each, partitions) for each in SETS)
    columns = ", ".join(f"{text} AS {quote(str(n))}" for n, text in enumerate(texts))
    with plans_interpreted(spark):
        found = spark.sql(f"SELECT {columns} FROM parquet.`{path}`").collect()
    for number, members in enumerate(SETS):
        expected = partitions_of_rows(table, members, partitions).tolist()
        assert [row[str(number)] for row in found] == expected, members
        plain = [value for each in members for value in each.values]
        if all(isinstance(value, Column) for value in plain):
            for row in range(ROWS):
                values = [[_value(table, value, row) for value in each.values] for each in members]
                assert expected[row] == partition_of_values(values, partitions)
        assert len(set(expected)) > 1


def _value(table: pa.Table, value: Expression, row: int) -> tuple[int | None, GsqlType]:
    assert isinstance(value, Column)
    found = table[value.name][row].as_py()
    is_text = isinstance(found, bytes)
    return (int.from_bytes(found) if is_text else found), value.type
