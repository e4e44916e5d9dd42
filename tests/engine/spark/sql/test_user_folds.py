"""User code on Spark.

Functions and aggregates by the text of their file, failures as one sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.user_code import offered

from gscope.engine.spark.sql.expressions import column_leaf, to_sql
from gscope.engine.spark.sql.udf import register_functions
from gscope.engine.spark.sql.user_failures import user_failures
from gscope.engine.spark.sql.user_folds import fold_sql, register_folds
from gscope.errors import UserCodeError
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Column
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CODE = """
    @function("INT", "STRING", returns="STRING", nullable=True)
    def tagged(x, text):
        return text + b"!" if x % 2 else None

    @function("INT", returns="INT")
    def fragile(x):
        return 10 // (x - 3)

    @function("INT", returns="FLOAT", pure=False)
    def noisy(x):
        from random import random

        return x + random()

    @aggregate("STRING", returns="STRING")
    class longest:
        def initialize(self):
            self.found = b""

        def iterate(self, value):
            self.found = max(self.found, value, key=lambda text: (len(text), text))

        def merge(self, other):
            self.iterate(other.found)

        def output(self):
            return self.found

    @aggregate("INT", returns="INT")
    class fails:
        def initialize(self): ...

        def iterate(self, value):
            raise KeyError(value)

        def output(self):
            return 0
"""
X = Column("x", GsqlType.INT, is_nullable=True)
TEXT = Column("s", GsqlType.STRING, is_nullable=True)


def test_user_code_runs_in_spark_s_workers(spark: SparkSession) -> None:
    rows = [(1, "a"), (2, "bé"), (3, None), (None, "long"), (5, "ccc")]
    spark.createDataFrame(rows, "x BIGINT, s STRING").coalesce(1).createOrReplaceTempView("mine")
    with offered(CODE):
        expressions = [call("tagged", X, TEXT), call("fragile", X), call("noisy", X)]
        register_functions(spark, expressions)
        register_folds(spark)
        tagged, fragile, noisy = (to_sql(e, column_leaf) for e in expressions)
        table = spark.sql(f"SELECT {tagged} AS t FROM mine").toArrow().to_pydict()
        assert table["t"] == ["a!", None, None, None, "ccc!"]

        noise = spark.sql(f"SELECT {noisy} - x AS n FROM mine WHERE x = 1 OR x = 3").toArrow()
        assert {0.0 <= n.as_py() < 1.0 for n in noise["n"]} == {True}
        assert len(set(noise["n"].to_pylist())) == 2

        folded = (
            f"SELECT x % 2 AS k, count(*) AS n, {fold_sql('longest', 's')} AS l"
            " FROM mine GROUP BY 1"
        )
        groups = {row.k: (row.n, row.l) for row in spark.sql(folded).collect()}
        assert groups == {1: (3, "ccc"), 0: (1, "bé"), None: (1, "long")}
        nothing = spark.sql(
            f"SELECT {fold_sql('longest', 's')} AS l FROM mine WHERE x = 3"
        ).collect()
        assert nothing[0].l is None

        with (
            pytest.raises(UserCodeError, match=r"^fragile\(3\) failed at mine.py:8: ZeroDivision"),
            user_failures(),
        ):
            spark.sql(f"SELECT {fragile} FROM mine").collect()
        with (
            pytest.raises(
                UserCodeError, match=r"^fails\(\d\) failed at mine.py:\d+: KeyError: \d$"
            ),
            user_failures(),
        ):
            spark.sql(f"SELECT {fold_sql('fails', 'x')} FROM mine").collect()


def test_other_aggregates_are_none_of_the_user_s() -> None:
    assert fold_sql("sum", "x") is None
    assert fold_sql("nosuch", "x") is None
