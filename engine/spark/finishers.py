"""The last step of aggregates that SQL has no text for: the catalog's own code as Arrow functions.

Spark gathers, for each group, what the catalog's function asks for; a row of input is a group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.functions import arrow_udf

from gscope.engine.spark.expressions import SPARK_TYPES
from gscope.engine.spark.udf import ARROW_TYPES, from_spark, to_spark
from gscope.queries.catalog.aggregate.estimates import estimate, sketch_entry
from gscope.queries.catalog.aggregate.moments import MOMENTS_BY_NAME
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from decimal import Decimal

    Finisher = Callable[..., Any]

    from pyspark.sql import SparkSession

    from gscope.queries.plan.program import Aggregate


def finisher_name(aggregate: Aggregate) -> str:
    """The name under which the finisher of ``aggregate`` is registered."""
    kind = "int" if aggregate.partials else aggregate.arguments[0].type.value.lower()
    if aggregate.function == "approx_top_k":
        kind = aggregate.arguments[0].type.value.lower()
    return f"gscope_finish_{aggregate.function}_{kind}"


def register_finishers(session: SparkSession, aggregates: Iterable[Aggregate]) -> None:
    """Register an Arrow function for every one of ``aggregates`` that needs a finisher."""
    for name, aggregate in {
        finisher_name(a): a for a in aggregates if a.function in _MAKERS
    }.items():
        finish = _MAKERS[aggregate.function](aggregate)
        function = _arrow_function(finish, aggregate.type)
        register = arrow_udf(function, SPARK_TYPES[aggregate.type])  # type: ignore[call-overload]  # wants the kind, which it warns about
        session.udf.register(name, register)


def _arrow_function(finish: Finisher, output: GsqlType) -> Callable[..., pa.Array]:
    arrow_type = ARROW_TYPES.get(output, pa.int64())

    def call(*arrays: pa.Array) -> pa.Array:
        groups = zip(*(array.to_pylist() for array in arrays), strict=True)
        return pa.array([to_spark(finish(*group), output) for group in groups], type=arrow_type)

    return call


def _moment(aggregate: Aggregate) -> Finisher:
    moment = MOMENTS_BY_NAME[aggregate.function]
    if not aggregate.partials and aggregate.arguments[0].type is GsqlType.FLOAT:
        return moment.of_floats

    def of_sums(count: int | None, *sums: Decimal | None) -> float | None:
        total, squares, upper, highest = (int(part or 0) for part in sums)
        return moment.of_sums(count or 0, total, squares + (upper << 32) + (highest << 64))

    return of_sums


def _top(aggregate: Aggregate) -> Finisher:
    entry = AGGREGATES[aggregate.function]
    kind = aggregate.arguments[0].type

    def of_pairs(pairs: Sequence[dict[str, Any]], k: int, type_name: str) -> Any:
        known = [(from_spark(pair["x"], kind), pair["n"]) for pair in pairs]
        return entry.finish(known, k, type_name.encode())

    return of_pairs


def _sketch(_: Aggregate) -> Finisher:
    return lambda hashes: estimate(map(sketch_entry, hashes))


_MAKERS: dict[str, Callable[[Aggregate], Finisher]] = {
    **dict.fromkeys(MOMENTS_BY_NAME, _moment),
    "approx_top_k": _top,
    "approx_count_distinct": _sketch,
}
