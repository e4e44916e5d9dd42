"""The estimate of how many different values there are.

Values are hashed; the last bits of a hash choose one of ``BUCKETS`` buckets, of which each keeps the least of
the other bits. This is HyperLogLog (Flajolet et al., 2007) with the whole minimum in place of the number of
its leading zeros (Giroire, 2009). The bucket joins the low-level key and the minimum is a plain MIN, so that an
LFTA sends at most ``BUCKETS`` small tuples for a group, however many values it has, and sketches merge exactly:
the estimate does not depend on the order or the split of tuples.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gscope.queries.catalog.aggregate.entry import (
    FIXED_SIZE,
    ORDERED,
    AggregateEntry,
    PartialRule,
    present,
)
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.evaluate import call
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.scalar.hashes import HASH_OF
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gscope.queries.expressions.expressions import Expression

BUCKET_BITS = 11
BUCKETS = 1 << BUCKET_BITS
_REST_BITS = 64 - BUCKET_BITS
_REST = (1 << _REST_BITS) - 1

STANDARD_ERROR = 0.025
"""Of the estimate, relative, however many values there are: 1.04/√m and what fits between the two formulas."""

_LINEAR_UP_TO = 2.0
"""Values a bucket up to which empty buckets tell more than minima."""


def sketch_entry(hashed: int) -> tuple[int, int]:
    """The bucket of a hash (signed 64 bits), and what competes to be the least in it."""
    return hashed & (BUCKETS - 1), hashed >> BUCKET_BITS & _REST


def estimate(entries: Iterable[tuple[int | None, int | None]]) -> int:
    """How many different values the buckets and minima speak of.

    Up to two values a bucket it is linear counting of the empty buckets (Whang et al., 1990):
    m·ln(m / empty). Beyond, the mean of the minima as parts of their range, 1 for an empty bucket, is expected
    to be (1 - e^-λ)/λ with λ values a bucket, which is solved for λ.

    Args:
        entries: (bucket, minimum), a bucket any number of times.
    """
    least: dict[int, int] = {}
    for bucket, value in entries:
        if bucket is not None and value is not None:
            least[bucket] = min(value, least.get(bucket, value))
    empty = BUCKETS - len(least)
    if empty:
        linear = math.log(BUCKETS / empty)
        if linear <= _LINEAR_UP_TO:
            return round(BUCKETS * linear)
    mean = (empty + math.fsum((v + 1) / (_REST + 1) for v in least.values())) / BUCKETS
    return round(BUCKETS * _values_a_bucket(mean))


def _values_a_bucket(mean: float) -> float:
    """λ with (1 - e^-λ)/λ = ``mean``, by the iteration λ = (1 - e^-λ)/mean."""
    load = 1 / mean
    for _ in range(64):
        load = -math.expm1(-load) / mean
    return load


def hash_of(arguments: Sequence[Expression]) -> Expression:
    """The hash of the argument as an expression."""
    return call(HASH_OF[arguments[0].type], arguments[0])


def _bucket(arguments: Sequence[Expression]) -> Expression:
    return call("bit_and", hash_of(arguments), Literal(BUCKETS - 1, GsqlType.INT))


def _rest(arguments: Sequence[Expression]) -> Expression:
    shifted = call("shr", hash_of(arguments), Literal(BUCKET_BITS, GsqlType.INT))
    return call("bit_and", shifted, Literal(_REST, GsqlType.INT))


def _evaluate(values: Sequence[Any], type_name: bytes) -> int:
    function: Callable[[Any], Any] = FUNCTIONS[HASH_OF[GsqlType(type_name.decode())]].evaluate
    return estimate(sketch_entry(function(value)) for value in present(values))


ESTIMATES = (
    AggregateEntry(
        "approx_count_distinct",
        ORDERED - {GsqlType.BOOL},
        GsqlType.INT,
        _evaluate,
        (PartialRule(PartialOp.MIN, _rest),),
        lambda entries, _type_name: estimate(entries),
        FIXED_SIZE - {GsqlType.FLOAT},
        "About how many different values there are; the same estimate however tuples come.",
        error=f"standard error {STANDARD_ERROR:.1%}",
        is_never_null=True,
        joins_key=True,
        joined=_bucket,
        knows_type=True,
    ),
)
