"""Functions that Spark has no built-in for, as Arrow functions over the catalog's own meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.functions import arrow_udf

from gscope.engine.spark.expressions import SPARK_TYPES, needs_udf, udf_name
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.types import GsqlType
from gscope.queries.plan.expressions import Call, Expression, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

_ARROW_TYPES: dict[GsqlType, pa.DataType] = {
    GsqlType.BOOL: pa.bool_(),
    GsqlType.FLOAT: pa.float64(),
    GsqlType.STRING: pa.string(),
    GsqlType.IP: pa.binary(),
    GsqlType.NULL: pa.bool_(),
}


def register_functions(session: SparkSession, expressions: Iterable[Expression]) -> None:
    """Register an Arrow function for every call in ``expressions`` that Spark has no text for."""
    calls = {
        udf_name(part): part
        for expression in expressions
        for part in walk(expression)
        if isinstance(part, Call) and needs_udf(part)
    }
    for name, call in calls.items():
        function = _arrow_function(
            call.function, [argument.type for argument in call.arguments], call.type
        )
        register = arrow_udf(function, SPARK_TYPES[call.type])  # type: ignore[call-overload]  # wants the kind, which it warns about
        session.udf.register(name, register)


def _arrow_function(name: str, inputs: list[GsqlType], output: GsqlType) -> Callable[..., Any]:
    entry = FUNCTIONS[name]
    arrow_type = _ARROW_TYPES.get(output, pa.int64())

    def call(*arrays: pa.Array) -> pa.Array:
        columns = [
            [_from_spark(value, kind) for value in array.to_pylist()]
            for array, kind in zip(arrays, inputs, strict=True)
        ]
        results = [
            None
            if entry.is_strict and any(value is None for value in row)
            else _to_spark(entry.evaluate(*row), output)
            for row in zip(*columns, strict=True)
        ]
        return pa.array(results, type=arrow_type)

    return call


def _from_spark(value: Any, kind: GsqlType) -> Any:
    if value is None:
        return None
    if kind is GsqlType.STRING:
        return value.encode("iso-8859-1")
    return int.from_bytes(value) if kind is GsqlType.IP else value


def _to_spark(value: Any, kind: GsqlType) -> Any:
    if value is None:
        return None
    if kind is GsqlType.STRING:
        return value.decode("iso-8859-1")
    return int(value).to_bytes(16) if kind is GsqlType.IP else value
