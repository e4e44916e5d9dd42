"""The last step of aggregates that SQL has no text for: the catalog's own code as Arrow functions.

Spark gathers the arguments of the catalog's function for each group; one row of input is one group.
Sums that may exceed 64 bits are finished here too, because SQL cannot count those that do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gscope.engine.running.halves import joined_halves
from gscope.engine.spark.sql.arrow_function import spark_function
from gscope.engine.spark.sql.udf import ARROW_TYPES, from_spark, to_spark
from gscope.engine.storage.counts import Counts
from gscope.queries.catalog.aggregate.estimates import estimate, sketch_entry
from gscope.queries.catalog.aggregate.moments import MOMENTS_BY_NAME
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from decimal import Decimal

    Finisher = Callable[..., Any]

    from pyspark.accumulators import Accumulator
    from pyspark.sql import SparkSession

    from gscope.engine.spark.sql.attempt_counts import AttemptCounts, ByAttempt
    from gscope.queries.plan.program import Aggregate


def finisher_name(aggregate: Aggregate) -> str:
    """Return the name under which the finisher of ``aggregate`` is registered."""
    kind = "int" if aggregate.partials else aggregate.arguments[0].type.value.lower()
    if aggregate.function == "approx_top_k":
        kind = aggregate.arguments[0].type.value.lower()
    return f"gscope_finish_{aggregate.function}_{kind}"


def register_finishers(
    session: SparkSession, aggregates: Iterable[Aggregate], counts: AttemptCounts | None = None
) -> None:
    """Register an Arrow function for each of ``aggregates`` that needs a finisher.

    The functions add sums that exceed 64 bits to ``counts``.
    """
    from gscope.engine.spark.sql.attempt_counts import AttemptCounts

    counts = counts or AttemptCounts(session)
    for name, aggregate in {
        finisher_name(a): a for a in aggregates if a.function in _MAKERS or a.can_wrap
    }.items():
        function = (
            _sum_function(counts.by_attempt)
            if aggregate.can_wrap
            else _arrow_function(_MAKERS[aggregate.function](aggregate), aggregate.type)
        )
        register = spark_function(function, aggregate.type)
        # Spark may evaluate a deterministic function several times, and a sum counts once.
        session.udf.register(
            name, register.asNondeterministic() if aggregate.can_wrap else register
        )


def _arrow_function(finish: Finisher, output: GsqlType) -> Callable[..., pa.Array]:
    arrow_type = ARROW_TYPES.get(output, pa.int64())

    def call(*arrays: pa.Array) -> pa.Array:
        groups = zip(*(array.to_pylist() for array in arrays), strict=True)
        return pa.array([to_spark(finish(*group), output) for group in groups], type=arrow_type)

    return call


def _sum_function(by_attempt: Accumulator[ByAttempt]) -> Callable[..., pa.Array]:
    """Return the function that reduces exact sums to 64 bits, and counts those that exceed them.

    It takes the sums of both halves, or one decimal sum, and then the query's name.
    """

    def call(*arrays: pa.Array) -> pa.Array:
        *parts, queries = arrays
        if not len(queries):
            return pa.array([], pa.int64())
        sums, wrapped = joined_halves(*parts) if len(parts) > 1 else _of_decimals(parts[0])
        if wrapped:
            query = from_spark(queries[0].as_py(), GsqlType.STRING).decode()
            from gscope.engine.spark.sql.attempt_counts import count_in_task

            count_in_task(by_attempt, Counts(wrapped_sums={query: wrapped}))
        return sums

    return call


def _of_decimals(totals: pa.Array) -> tuple[pa.Array, int]:
    exact = [None if total is None else int(total) for total in totals.to_pylist()]
    sums = [None if total is None else wrap(total) for total in exact]
    wrapped = sum(total != known for total, known in zip(exact, sums, strict=True))
    return pa.array(sums, pa.int64()), wrapped


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
