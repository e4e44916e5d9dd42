"""Functions on TIMESTAMP (nanoseconds since 1970, UTC) and INTERVAL (nanoseconds)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from gscope.queries.catalog.scalar.entry import (
    FLIPS,
    KEEPS,
    FunctionEntry,
    Parameter,
    by,
    loses,
    unless_nonzero_literal,
)
from gscope.queries.catalog.scalar.integers import divide, divisor, wrap
from gscope.queries.expressions.types import GsqlType

_TIMESTAMP = Parameter(GsqlType.TIMESTAMP)
_INTERVAL = Parameter(GsqlType.INTERVAL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS_A_NS = 1e6


def format_timestamp(timestamp_ns: int) -> str:
    """Return ``2024-05-06 07:08:09.123456789Z``, UTC, always with nine digits, as in answers."""
    seconds, fraction = divmod(timestamp_ns, 1_000_000_000)
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{fraction:09d}Z"


_FUNCTIONS = (
    FunctionEntry(
        "ts_diff",
        (_TIMESTAMP, _TIMESTAMP),
        GsqlType.FLOAT,
        lambda a, b: wrap(a - b) / _MS_A_NS,
        cost=5,
        gains=(by(1, 1_000_000), by(-1, 1_000_000)),
    ),
    FunctionEntry(
        "ts_add",
        (_TIMESTAMP, _INTERVAL),
        GsqlType.TIMESTAMP,
        lambda a, b: wrap(a + b),
        gains=(KEEPS, KEEPS),
    ),
    FunctionEntry(
        "ts_sub",
        (_TIMESTAMP, _INTERVAL),
        GsqlType.TIMESTAMP,
        lambda a, b: wrap(a - b),
        gains=(KEEPS, FLIPS),
    ),
    FunctionEntry(
        "ts_idiv",
        (_TIMESTAMP, _INTERVAL),
        GsqlType.INT,
        divide,
        makes_null=unless_nonzero_literal(1),
        cost=5,
        gains=(divisor, loses),
    ),
    FunctionEntry("ts_to_int", (_TIMESTAMP,), GsqlType.INT, lambda a: a, cost=0, gains=(KEEPS,)),
    FunctionEntry(
        "int_to_ts",
        (Parameter(GsqlType.INT),),
        GsqlType.TIMESTAMP,
        lambda a: a,
        cost=0,
        gains=(KEEPS,),
    ),
    FunctionEntry(
        "timestamp_to_string",
        (_TIMESTAMP,),
        GsqlType.STRING,
        lambda a: format_timestamp(a).encode(),
        cost=100,
        is_lfta_safe=False,
    ),
)
TIMES = {entry.name: entry for entry in _FUNCTIONS}
