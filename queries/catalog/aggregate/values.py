"""Aggregates over the different values of a group and their counts.

The argument joins the low-level key; the LFTA counts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gscope.queries.catalog.aggregate.entry import (
    FIXED_SIZE,
    INTEGERS,
    NUMBERS,
    ORDERED,
    AggregateEntry,
    Constant,
    PartialRule,
    tuples,
)
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.aggregate.plain import average, total
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.scalar.logic import order_key
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gscope.queries.expressions.expressions import Value

LARGEST_K = 1000

_TEXT: dict[GsqlType, str] = {
    GsqlType.INT: "int_to_string",
    GsqlType.FLOAT: "float_to_string",
    GsqlType.IP: "ip_to_string",
    GsqlType.MAC: "mac_to_string",
    GsqlType.TIMESTAMP: "timestamp_to_string",
}
_COUNTED = (PartialRule(PartialOp.COUNT, tuples),)


def counts(pairs: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Return every value that is not NULL once with its count, in the order of the values."""
    sums: dict[Any, int] = defaultdict(int)
    values: dict[Any, Any] = {}
    for value, count in pairs:
        if value is not None:
            key = order_key(value)
            # One zero: the result must not depend on which of 0.0 and -0.0 came first.
            values.setdefault(key, value + 0.0 if isinstance(value, float) else value)
            sums[key] += count
    return [(values[key], sums[key]) for key in sorted(values)]


def quantile(pairs: Iterable[tuple[Any, int]], part: float) -> float | None:
    """Return the value below which ``part`` of the values lie, as SQL's percentile_cont.

    With n values in order x[0] … x[n-1] and p = (n-1)·part it is x[p], interpolated between two of
    them: x[⌊p⌋] + (p-⌊p⌋)·(x[⌈p⌉]-x[⌊p⌋]), as Spark's ``percentile`` computes it.
    """
    known = counts(pairs)
    if not known:
        return None
    place = (sum(count for _, count in known) - 1) * part
    below, above = _at(known, math.floor(place)), _at(known, math.ceil(place))
    if order_key(below) == order_key(above):
        return below + 0.0
    return below + (place - math.floor(place)) * (above - below) + 0.0


def _at(known: Sequence[tuple[Any, int]], place: int) -> float:
    for value, count in known:
        if place < count:
            return float(value)
        place -= count
    return float(known[-1][0])


def top(pairs: Iterable[tuple[Any, int]], k: int, type_name: bytes) -> bytes:
    """Return the ``k`` most frequent values as ``value=count, value=count``.

    Of equal counts the least value comes first.

    Args:
        pairs: values and counts.
        k: the number of values.
        type_name: the type of the values, which decides their format.
    """
    best = sorted(counts(pairs), key=lambda pair: -pair[1])[:k]
    return top_text(best, GsqlType(type_name.decode()))


def top_text(best: Iterable[tuple[Any, int]], kind: GsqlType) -> bytes:
    """Return values of a type, with their counts, in the format of ``top``."""
    return b", ".join(b"%b=%d" % (_text(value, kind), count) for value, count in best)


def _text(value: Any, kind: GsqlType) -> bytes:
    if kind is GsqlType.STRING:
        return bytes(value)
    text = FUNCTIONS[_TEXT[kind]].evaluate(value)
    assert isinstance(text, bytes)
    return text


def _top_of_values(pairs: Iterable[tuple[Any, int]], k: int, type_name: bytes) -> bytes | None:
    return top(pairs, k, type_name) or None


def _distinct(pairs: Iterable[tuple[Any, int]]) -> int:
    return len(counts(pairs))


def _duplicates(pairs: Iterable[tuple[Any, int]]) -> int:
    return sum(count - 1 for _, count in counts(pairs))


def _values(pairs: Iterable[tuple[Any, int]]) -> list[Any]:
    return [value for value, _ in counts(pairs)]


def _part_objection(part: Any) -> str:
    return "" if 0 <= part <= 1 else f"invalid quantile: expected 0 to 1, got {part}"


def _k_objection(k: Any) -> str:
    return "" if 1 <= k <= LARGEST_K else f"invalid k: expected 1 to {LARGEST_K}, got {k}"


def _entry(
    name: str,
    types: frozenset[GsqlType],
    result: GsqlType | None,
    finish: Callable[..., Value],
    doc: str,
) -> AggregateEntry:
    """Return the entry of an aggregate over counted values; ``replace`` adds its other facts."""

    def evaluate(values: Sequence[Any], *arguments: Any) -> Value:
        return finish([(value, 1) for value in values], *arguments)

    return AggregateEntry(
        name,
        types,
        result,
        evaluate,
        _COUNTED,
        finish,
        types & FIXED_SIZE,
        doc,
        joins_key=True,
    )


VALUES = (
    replace(
        _entry(
            "count_distinct",
            ORDERED,
            GsqlType.INT,
            _distinct,
            "The exact number of different values. Also count(DISTINCT x).",
        ),
        is_never_null=True,
    ),
    replace(
        _entry(
            "count_dups",
            ORDERED,
            GsqlType.INT,
            _duplicates,
            "The number of repeated values in the group: the count minus the number of different "
            "values.",
        ),
        is_never_null=True,
    ),
    _entry(
        "sum_distinct",
        INTEGERS,
        None,
        lambda pairs: total(_values(pairs)),
        "The sum of the different values; it wraps at 64 bits and is counted like sum. "
        "Also sum(DISTINCT x).",
    ),
    _entry(
        "avg_distinct",
        INTEGERS,
        GsqlType.FLOAT,
        lambda pairs: average(_values(pairs)),
        "The average of the different values. Also avg(DISTINCT x).",
    ),
    replace(
        _entry(
            "quantile",
            NUMBERS,
            GsqlType.FLOAT,
            quantile,
            "quantile(x, q), q from 0 to 1: the value below which that fraction of the values "
            "lies, interpolated between neighbours (percentile_cont of SQL); exact.",
        ),
        constants=(Constant("q", GsqlType.FLOAT, _part_objection),),
        survives_sampling=True,
    ),
    replace(
        _entry(
            "median",
            NUMBERS,
            GsqlType.FLOAT,
            lambda pairs: quantile(pairs, 0.5),
            "quantile(x, 0.5).",
        ),
        survives_sampling=True,
    ),
    replace(
        _entry(
            "approx_top_k",
            frozenset({*_TEXT, GsqlType.STRING}),
            GsqlType.STRING,
            _top_of_values,
            "approx_top_k(x, k): the k most frequent values as 'value=count, value=count', the "
            "least first among equal counts; this version counts exactly.",
        ),
        constants=(Constant("k", GsqlType.INT, _k_objection),),
        knows_type=True,
    ),
)
