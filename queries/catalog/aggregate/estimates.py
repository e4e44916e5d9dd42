"""The estimate of the number of different values.

Values are hashed; the last bits of a hash choose one of ``BUCKETS`` buckets, each of which keeps
the minimum of the other bits. This is HyperLogLog (Flajolet et al., 2007) with the whole minimum in
place of the number of its leading zeros (Giroire, 2009). The bucket joins the low-level key and the
minimum is a plain MIN, so that an LFTA sends at most ``BUCKETS`` small tuples for a group, however
many values it has, and sketches merge exactly: the estimate does not depend on the order or the
split of tuples.
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
"""The relative standard error of the estimate, for any number of values.

1.04/√m, and a margin where one formula takes over from the other.
"""

_LINEAR_UP_TO = 2.0
"""Values per bucket up to which the number of empty buckets is more accurate than the minima."""


def sketch_entry(hashed: int) -> tuple[int, int]:
    """Return the bucket of a hash (signed 64 bits), and the bits that compete for its minimum."""
    return hashed & (BUCKETS - 1), hashed >> BUCKET_BITS & _REST


def estimate(entries: Iterable[tuple[int | None, int | None]]) -> int:
    """Estimate the number of different values from buckets and minima.

    Up to two values per bucket it is linear counting of the empty buckets (Whang et al., 1990):
    m·ln(m / empty). Beyond, the mean of the minima as fractions of their range, 1 for an empty
    bucket, is expected to be (1 - e^-λ)/λ with λ values per bucket, which is solved for λ.

    Args:
        entries: (bucket, minimum), in which a bucket may occur several times.
    """
    least: dict[int, int] = {}
    for bucket, value in entries:
        if bucket is not None and value is not None:
            least[bucket] = min(value, least.get(bucket, value))
    empty = BUCKETS - len(least)
    linear = linear_estimate(empty)
    if linear is not None:
        return linear
    mean = (empty + math.fsum((v + 1) / (_REST + 1) for v in least.values())) / BUCKETS
    return round(BUCKETS * _values_a_bucket(mean))


def linear_estimate(empty: int) -> int | None:
    """Return the estimate by the number of empty buckets; None if it is more accurate by minima."""
    if not empty:
        return None
    linear = math.log(BUCKETS / empty)
    return round(BUCKETS * linear) if linear <= _LINEAR_UP_TO else None


def _values_a_bucket(mean: float) -> float:
    """Solve (1 - e^-λ)/λ = ``mean`` for λ, by the iteration λ = (1 - e^-λ)/mean."""
    load = 1 / mean
    for _ in range(64):
        load = -math.expm1(-load) / mean
    return load


def hash_of(arguments: Sequence[Expression]) -> Expression:
    """Return the hash of the argument as an expression."""
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
        "An estimate of the number of different values, which does not depend on the order of "
        "tuples.",
        error=f"standard error {STANDARD_ERROR:.1%}",
        is_never_null=True,
        joins_key=True,
        joined=_bucket,
        knows_type=True,
    ),
)
