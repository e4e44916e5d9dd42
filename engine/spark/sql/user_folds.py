"""User aggregates on Spark: the user's class folds the values gathered for each group.

SELECT tb, gscope_fold_x(collect_list(v)) … GROUP BY tb

Spark does not accept its own grouped Python aggregates beside built-in ones; a query may mix them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gscope.engine.spark.sql.arrow_function import spark_function
from gscope.engine.spark.sql.udf import ARROW_TYPES, from_spark, to_spark
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.user_functions.calls import UserFold
from gscope.queries.catalog.user_functions.install import installed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from gscope.queries.expressions.types import GsqlType

_SLICE = 1 << 16


def register_folds(session: SparkSession) -> None:
    """Register an Arrow function for each user aggregate of this process."""
    for code in installed():
        if isinstance(code, UserFold):
            register = spark_function(_arrow_function(code), code.facts.returns)
            session.udf.register(_name(code.facts.name), register)


def fold_sql(function: str, argument: str) -> str | None:
    """Return the text of the user aggregate ``function`` of ``argument``.

    Return None if no user aggregate has that name.
    """
    entry = AGGREGATES.get(function)
    if entry is None or not isinstance(entry.evaluate, UserFold):
        return None
    return f"{_name(function)}(collect_list({argument}))"


def _name(function: str) -> str:
    return f"gscope_fold_{function}"


def _arrow_function(code: UserFold) -> Callable[[pa.Array], pa.Array]:
    kind, output = code.facts.argument, code.facts.returns
    arrow_type = ARROW_TYPES.get(output, pa.int64())

    def fold(groups: pa.Array) -> pa.Array:
        results = [code(_values(group, kind)) for group in groups]
        return pa.array([to_spark(value, output) for value in results], type=arrow_type)

    return fold


def _values(group: pa.ListScalar, kind: GsqlType) -> Iterator[Any]:
    """Yield the values of a group, converting a slice at a time to Python values."""
    values = group.values
    for start in range(0, 0 if values is None else len(values), _SLICE):
        for value in values.slice(start, _SLICE).to_pylist():
            yield from_spark(value, kind)
