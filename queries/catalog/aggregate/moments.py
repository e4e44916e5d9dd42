"""Variance and standard deviation, of a sample and of a population.

Of integers the variance is exact, rounded once: all ways of computing collect the same integers n,
Σx and Σx², of any size, and ``MomentAggregate.of_sums`` divides integers. An LFTA sums the lower
and the upper 32 bits of x² separately, so that sums of 64 bits suffice for 2³¹ tuples of a group.
Of FLOAT it is computed in two passes with exactly rounded sums, which the order of tuples does not
change.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gscope.queries.catalog.aggregate.entry import (
    INTEGERS,
    NUMBERS,
    AggregateEntry,
    PartialRule,
    present,
)
from gscope.queries.catalog.aggregate.halves import LOW_32, high_half, low_half
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Call, Expression, Literal, PacketField
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONG_FIELDS = frozenset({"time", "time_ns"})
"""Packet fields of type INT that exceed 32 bits."""

_CHOOSING = frozenset({"min_of", "max_of", "coalesce"})
_REDUCING = frozenset({"mod_int", "idiv_int", "shr"})
"""Functions whose result is no larger than their first argument."""


@dataclass(frozen=True, slots=True)
class MomentAggregate:
    """A variance or a standard deviation.

    Attributes:
        divisor: the number subtracted from the count of values in the divisor: 1 for a sample, 0
            for a population.
        is_root: whether it is a standard deviation, otherwise a variance.
    """

    divisor: int
    is_root: bool

    def of_sums(self, count: int, total: int, squares: int) -> float | None:
        """Return the result for ``count`` integers with the sums Σx and Σx²; None if too few."""
        if count <= self.divisor:
            return None
        return self._rooted((count * squares - total * total) / (count * (count - self.divisor)))

    def of_floats(self, values: Sequence[float]) -> float | None:
        """Return the result for FLOAT values; None if there are too few."""
        count = len(values)
        if count <= self.divisor:
            return None
        if not all(map(math.isfinite, values)):
            return math.nan
        try:
            mean = math.fsum(values) / count
            spread = math.fsum((value - mean) ** 2 for value in values)
        except OverflowError:
            return math.inf
        return self._rooted(spread / (count - self.divisor))

    def of_values(self, values: Sequence[Any]) -> float | None:
        """Return the result for the values of a group."""
        numbers = present(values)
        if numbers and isinstance(numbers[0], float):
            return self.of_floats(numbers)
        return self.of_sums(len(numbers), sum(numbers), sum(x * x for x in numbers))

    def of_partials(self, partials: Sequence[Any]) -> float | None:
        """Return the result for the merged partials of an LFTA."""
        count, total, low, high = partials
        return self.of_sums(count, total or 0, (low or 0) + ((high or 0) << 32))

    def _rooted(self, variance: float) -> float:
        return math.sqrt(variance) if self.is_root else variance


MOMENTS_BY_NAME: dict[str, MomentAggregate] = {
    "var": MomentAggregate(1, is_root=False),
    "var_pop": MomentAggregate(0, is_root=False),
    "stddev": MomentAggregate(1, is_root=True),
    "stddev_pop": MomentAggregate(0, is_root=True),
}


def _is_small(expression: Expression) -> bool:
    """Return whether 32 bits and a sign hold every value: then sums of halves of x² are exact."""
    match expression:
        case Literal(value):
            return value is None or (isinstance(value, int) and abs(value) < 1 << 32)
        case PacketField(name):
            return name.rpartition(".")[2] not in _LONG_FIELDS
        case Call(function, arguments) if function in _CHOOSING:
            return all(map(_is_small, arguments))
        case Call(function, arguments) if function in _REDUCING:
            return _is_small(arguments[0])
        case Call("case", arguments):
            return all(map(_is_small, (*arguments[1:-1:2], arguments[-1])))
        case Call("bit_and", arguments):
            return any(
                isinstance(a, Literal) and _is_small(a) and _is_positive(a) for a in arguments
            )
        case Call("bool_to_int", _):
            return True
    return False


def _is_positive(literal: Literal) -> bool:
    return isinstance(literal.value, int) and literal.value >= 0


def _square(arguments: Sequence[Expression]) -> tuple[Expression]:
    return (call("mul_int", arguments[0], arguments[0]),)


def _lower_square(arguments: Sequence[Expression]) -> Expression:
    return low_half(_square(arguments))


def _upper_square(arguments: Sequence[Expression]) -> Expression:
    return call("bit_and", high_half(_square(arguments)), LOW_32)


_PARTIALS = (
    PartialRule(PartialOp.COUNT),
    PartialRule(PartialOp.SUM),
    PartialRule(PartialOp.SUM, _lower_square),
    PartialRule(PartialOp.SUM, _upper_square),
)


def _entry(name: str, doc: str) -> AggregateEntry:
    moment = MOMENTS_BY_NAME[name]
    return AggregateEntry(
        name,
        NUMBERS,
        GsqlType.FLOAT,
        moment.of_values,
        _PARTIALS,
        moment.of_partials,
        INTEGERS,
        doc,
        makes_null=moment.divisor > 0,
        survives_sampling=True,
        fits=lambda arguments: _is_small(arguments[0]),
    )


MOMENTS = (
    _entry("var", "The variance of a sample: Σ(x - mean)² / (n - 1); NULL for one value."),
    _entry("var_pop", "The variance of a population: Σ(x - mean)² / n."),
    _entry("stddev", "The standard deviation of a sample: the root of var; NULL for one value."),
    _entry("stddev_pop", "The standard deviation of a population: the root of var_pop."),
)
