"""Ends of intervals in Spark are those of the catalog.

That holds also of NULL, NaN and the ends of 64 bits.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from gscope.engine.spark.sql.expressions import column_leaf, to_sql
from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.expressions.expressions import Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT, MIN_INT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTS = (None, 0, 7, -7, 1 << 53, (1 << 53) + 1, MAX_INT, MIN_INT)
FLOATS = (None, 0.0, 0.5, -2.25, 1e300, math.inf, -math.inf, math.nan)
SQUARES = (None, 0.0, 2.0, 1e-300, 1e30, math.inf, math.nan, -1.0)
VALUES: dict[GsqlType, tuple[Any, ...]] = {GsqlType.INT: INTS, GsqlType.FLOAT: FLOATS}


def ends(kind: GsqlType) -> list[Expression]:
    name = kind.value.lower()
    lowest = Literal(None, kind), Literal(3 if kind is GsqlType.INT else 0.25, kind)
    return [
        end
        for value, squared in product(VALUES[kind], SQUARES)
        for arguments in [(Literal(value, kind), Literal(squared, GsqlType.FLOAT))]
        for end in (
            call(f"estimate_high_{name}", *arguments),
            *(call(f"estimate_low_{name}", *arguments, least) for least in lowest),
        )
    ]


@pytest.mark.spark
@pytest.mark.parametrize("kind", [GsqlType.INT, GsqlType.FLOAT], ids=lambda kind: kind.value)
def test_spark_computes_the_ends_that_the_catalog_does(kind: GsqlType, spark: SparkSession) -> None:
    expressions = ends(kind)
    texts = (f"{to_sql(each, column_leaf)} AS c{n}" for n, each in enumerate(expressions))
    (row,) = spark.sql(f"SELECT {', '.join(texts)}").collect()
    for each, found in zip(expressions, row, strict=True):
        expected = evaluate(each, lambda _: None)
        both_nan = expected != expected and found != found
        assert both_nan or (found == expected and type(found) is type(expected)), each
