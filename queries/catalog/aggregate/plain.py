"""Counts, sums, extremes, averages and bits: aggregates with partials of a word or two."""

from __future__ import annotations

from functools import reduce
from operator import add, and_, or_, xor
from typing import TYPE_CHECKING, Any

from gscope.queries.catalog.aggregate.entry import (
    FIXED_SIZE,
    INTEGERS,
    NUMBERS,
    ORDERED,
    AggregateEntry,
    PartialRule,
    only,
    present,
)
from gscope.queries.catalog.aggregate.halves import high_half, low_half, whole
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.catalog.scalar.logic import order_key
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.expressions.expressions import Value

_BOOLEANS = frozenset({GsqlType.BOOL})


def total(values: Sequence[Any]) -> Value:
    """Return the sum of the values that are not NULL; integers wrap, FLOAT is added ascending."""
    numbers = present(values)
    if not numbers:
        return None
    if isinstance(numbers[0], float):
        ascending: list[float] = sorted((x + 0.0 for x in numbers), key=order_key)
        return reduce(add, ascending)
    return wrap(sum(numbers))


def average(values: Sequence[Any]) -> Value:
    """Return the exact sum divided by the number of values; FLOAT is added as by ``total``."""
    numbers = present(values)
    if not numbers:
        return None
    exact = total(numbers) if isinstance(numbers[0], float) else sum(numbers)
    assert exact is not None
    return float(exact) / float(len(numbers))


def _wrapped(partials: Sequence[Any]) -> Value:
    """Return a sum from its one partial or two halves, in 64 bits."""
    if len(partials) == 1 or partials[0] is None:
        return only(partials[:1])
    return wrap(whole(*partials))


def _ratio(partials: Sequence[Any]) -> Value:
    """Return an average from its partials: the sum, whole or in halves, and the count."""
    *sums, count = partials
    if not count:
        return None
    return float(whole(*sums) if len(sums) > 1 else sums[0]) / float(count)


def _folded(fold: Callable[[Any, Any], Any]) -> Callable[[Sequence[Any]], Value]:
    def evaluate(values: Sequence[Any]) -> Value:
        operands = present(values)
        return reduce(fold, operands) if operands else None

    return evaluate


def _least(a: Any, b: Any) -> Any:
    return b if order_key(b) < order_key(a) else a


def _greatest(a: Any, b: Any) -> Any:
    return b if order_key(b) > order_key(a) else a


def _simple(
    name: str,
    op: PartialOp,
    types: frozenset[GsqlType],
    lfta_types: frozenset[GsqlType],
    evaluate: Callable[[Sequence[Any]], Value],
    doc: str,
) -> AggregateEntry:
    return AggregateEntry(name, types, None, evaluate, (PartialRule(op),), only, lfta_types, doc)


PLAIN = (
    AggregateEntry(
        "count",
        ORDERED,
        GsqlType.INT,
        lambda values: len(present(values)),
        (PartialRule(PartialOp.COUNT),),
        only,
        ORDERED,
        "The number of tuples (count(*)), or of values that are not NULL (count(x)).",
        takes_star=True,
        is_never_null=True,
        survives_sampling=True,
    ),
    AggregateEntry(
        "sum",
        NUMBERS,
        None,
        total,
        (PartialRule(PartialOp.SUM, low_half), PartialRule(PartialOp.SUM, high_half)),
        _wrapped,
        INTEGERS,
        "The sum. Sums of integers wrap at 64 bits, and the summary counts those that did. FLOAT "
        "is added from the least value to the greatest, so the result does not depend on the order "
        "of tuples.",
        survives_sampling=True,
        narrow=(PartialRule(PartialOp.SUM),),
    ),
    _simple(
        "min",
        PartialOp.MIN,
        ORDERED,
        FIXED_SIZE,
        _folded(_least),
        "The least value; NaN is greater than all numbers.",
    ),
    _simple(
        "max",
        PartialOp.MAX,
        ORDERED,
        FIXED_SIZE,
        _folded(_greatest),
        "The greatest value; NaN is greater than all numbers.",
    ),
    AggregateEntry(
        "avg",
        NUMBERS,
        GsqlType.FLOAT,
        average,
        (
            PartialRule(PartialOp.SUM, low_half),
            PartialRule(PartialOp.SUM, high_half),
            PartialRule(PartialOp.COUNT),
        ),
        _ratio,
        INTEGERS,
        "The sum divided by the count; of integers one division of two exact numbers, which never "
        "wrap; of FLOAT see sum.",
        survives_sampling=True,
        narrow=(PartialRule(PartialOp.SUM), PartialRule(PartialOp.COUNT)),
    ),
    _simple(
        "or_aggr", PartialOp.OR, INTEGERS, INTEGERS, _folded(or_), "The bits set in any value."
    ),
    _simple(
        "and_aggr",
        PartialOp.AND,
        INTEGERS,
        INTEGERS,
        _folded(and_),
        "The bits set in all values.",
    ),
    _simple(
        "xor_aggr",
        PartialOp.XOR,
        INTEGERS,
        INTEGERS,
        _folded(xor),
        "The bits set in an odd number of values.",
    ),
    _simple(
        "bool_or", PartialOp.MAX, _BOOLEANS, _BOOLEANS, _folded(or_), "Whether any value is true."
    ),
    _simple(
        "bool_and",
        PartialOp.MIN,
        _BOOLEANS,
        _BOOLEANS,
        _folded(and_),
        "Whether all values are true.",
    ),
)
