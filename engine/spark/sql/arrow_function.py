"""Functions of Arrow columns as functions of Spark SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.engine.spark.sql.expressions import SPARK_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from gscope.queries.expressions.types import GsqlType


def spark_function(function: Callable[..., pa.Array], result: GsqlType) -> Any:
    """Return what a session registers: ``function``, with a result of this type."""
    # Loaded with Spark only: the job imports SQL's modules also in runs that never start it.
    from pyspark.sql.pandas.functions import arrow_udf

    return arrow_udf(function, SPARK_TYPES[result])  # type: ignore[call-overload]  # wants the kind, which it warns about
