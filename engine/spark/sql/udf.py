"""Functions without a Spark built-in, as Arrow functions that evaluate the catalog's definition.

Functions that read payloads count those that they cannot read.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gscope.engine.spark.sql import constant_tables
from gscope.engine.spark.sql.arrow_function import spark_function
from gscope.engine.spark.sql.expressions import needs_udf, udf_name
from gscope.engine.storage.payload_counts import payload_counts
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.scalar.lookups import LOOKUPS
from gscope.queries.catalog.scalar.regex import find_all, match_all
from gscope.queries.expressions.expressions import Call, Expression, walk
from gscope.queries.expressions.types import GsqlType
from gscope.queries.streams.texts import as_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.accumulators import Accumulator
    from pyspark.sql import SparkSession

    from gscope.engine.spark.sql.attempt_counts import AttemptCounts, ByAttempt
    from gscope.queries.catalog.scalar.entry import FunctionEntry

    RowFunction = Callable[..., Any]

ARROW_TYPES: dict[GsqlType, pa.DataType] = {
    GsqlType.BOOL: pa.bool_(),
    GsqlType.FLOAT: pa.float64(),
    GsqlType.STRING: pa.string(),
    GsqlType.IP: pa.binary(),
    GsqlType.NULL: pa.bool_(),
}
_WORTH_REMEMBERING = 100
"""A function of this cost or more is computed once for equal arguments of a batch."""


def register_functions(session: SparkSession, expressions: Iterable[Expression]) -> AttemptCounts:
    """Register an Arrow function for each call in ``expressions`` that has no SQL text.

    Those of lookups change with their files; ``engine/spark/sql/lookups.py`` registers them.

    Returns:
        The counts to which these functions add.
    """
    from gscope.engine.spark.sql.attempt_counts import AttemptCounts

    counts = AttemptCounts(session)
    calls = {
        udf_name(part): part
        for expression in expressions
        for part in walk(expression)
        if isinstance(part, Call) and needs_udf(part) and part.function not in LOOKUPS
    }
    for name, call in calls.items():
        entry = FUNCTIONS[call.function]
        function: Callable[..., pa.Array]
        if call.function == "in_table":
            function = constant_tables.arrow_function(call)
        elif call.function in _REGEX:
            function = _REGEX[call.function]
        else:
            kinds = [argument.type for argument in call.arguments]
            function = _arrow_function(entry, kinds, call.type, counts.by_attempt)
        register = spark_function(function, call.type)
        session.udf.register(name, register if entry.is_pure else register.asNondeterministic())
    return counts


def _arrow_function(
    entry: FunctionEntry,
    inputs: list[GsqlType],
    output: GsqlType,
    counts: Accumulator[ByAttempt],
) -> Callable[..., pa.Array]:
    arrow_type = ARROW_TYPES.get(output, pa.int64())

    def call(*arrays: pa.Array) -> pa.Array:
        columns = [
            [from_spark(value, kind) for value in array.to_pylist()]
            for array, kind in zip(arrays, inputs, strict=True)
        ]
        rows = zip(*columns, strict=True)
        results = _read(entry, rows, counts) if entry.is_high_only else _evaluate(entry, rows)
        return pa.array([to_spark(value, output) for value in results], type=arrow_type)

    return call


def _matches(texts: pa.Array, patterns: pa.Array) -> pa.Array:
    """Return ``str_regex_match`` of a whole column; the pattern is a constant."""
    if not len(texts) or not patterns[0].is_valid:
        return pa.nulls(len(texts), pa.bool_())
    return match_all(as_bytes(texts), patterns[0].as_py().encode("iso-8859-1"))


def _extracts(texts: pa.Array, patterns: pa.Array) -> pa.Array:
    """Return ``str_extract_regex`` of a whole column; the pattern is a constant."""
    if not len(texts) or not patterns[0].is_valid:
        return pa.nulls(len(texts), pa.string())
    found = find_all(as_bytes(texts), patterns[0].as_py().encode("iso-8859-1"))
    return pa.array([to_spark(part, GsqlType.STRING) for part in found.to_pylist()], pa.string())


_REGEX = {"str_regex_match": _matches, "str_extract_regex": _extracts}


def _evaluate(entry: FunctionEntry, rows: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """Yield the value of the entry's function, row by row."""
    # Not of FLOAT: as keys of a dictionary, 0.0 and -0.0 are equal.
    is_remembered = (
        entry.cost >= _WORTH_REMEMBERING
        and entry.is_pure
        and all(parameter.type not in (None, GsqlType.FLOAT) for parameter in entry.parameters)
    )
    known: dict[tuple[Any, ...], Any] = {}
    for row in rows:
        if entry.is_strict and any(value is None for value in row):
            yield None
        elif not is_remembered:
            yield entry.evaluate(*row)
        else:
            if row not in known:
                known[row] = entry.evaluate(*row)
            yield known[row]


def _read(
    entry: FunctionEntry, rows: Iterable[tuple[Any, ...]], counts: Accumulator[ByAttempt]
) -> Iterator[Any]:
    """Yield what the entry's reader finds in payloads, row by row; count those it cannot read."""
    # Imported here: only these functions need dpkt.
    from gscope.engine.functions.application import read
    from gscope.engine.functions.base import Outcome

    found: Counter[Outcome] = Counter()
    for (payload,) in rows:
        value, outcome = (None, Outcome.READ) if payload is None else read(entry.name, payload)
        found[outcome] += 1
        yield value
    if sum(found.values()) > found[Outcome.READ]:
        from gscope.engine.spark.sql.attempt_counts import count_in_task

        count_in_task(counts, payload_counts({entry.name: found}))


def from_spark(value: Any, kind: GsqlType) -> Any:
    """Return a value of Spark as the catalog represents it."""
    if value is None:
        return None
    if kind is GsqlType.STRING:
        return value.encode("iso-8859-1")
    return int.from_bytes(value) if kind is GsqlType.IP else value


def to_spark(value: Any, kind: GsqlType) -> Any:
    """Return a value of the catalog as Spark represents it."""
    if value is None:
        return None
    if kind is GsqlType.STRING:
        return value.decode("iso-8859-1")
    return int(value).to_bytes(16) if kind is GsqlType.IP else value
