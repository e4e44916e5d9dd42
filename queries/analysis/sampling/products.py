"""Sums of squares and products over the units of a sample, as aggregates of a grouping.

The variance of an estimated total Σc·Y of counts and sums Y is c·S·c, where S has, for each pair of
them, the sum over units of the product of what the unit adds to both (``Products.of``). Sums of
products that are aggregates already are not computed twice: of a count, the sum of squares is the
count. Sums of squares of packet fields are exact integers that an LFTA folds, in two halves; others
are of FLOAT.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from gscope.queries.analysis.sampling.units import BUCKETS
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.logical import AggregateCall
from gscope.queries.plan.sample_columns import HIDDEN_AGGREGATE
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Total: TypeAlias = tuple[str, tuple[Expression, ...]]
"""A count or sum over rows: the aggregate and its arguments."""

Linear: TypeAlias = Mapping[Total, float]
"""A sum of totals, each with its factor."""

COUNT: Total = ("count", ())
"""The number of rows."""

_LOW_32 = Literal((1 << 32) - 1, GsqlType.INT)
_32 = Literal(32, GsqlType.INT)
_UNBIASED = BUCKETS / (BUCKETS - 1)


def number(value: float) -> Literal:
    """Return a constant FLOAT."""
    return Literal(value, GsqlType.FLOAT)


def as_float(expression: Expression) -> Expression:
    """Return a number as FLOAT."""
    return expression if expression.type is GsqlType.FLOAT else call("int_to_float", expression)


def times(one: Expression, other: Expression) -> Expression:
    """Return a product of FLOATs."""
    if one == number(1.0):
        return other
    return one if other == number(1.0) else call("mul_float", one, other)


def plus(parts: Sequence[Expression]) -> Expression:
    """Return a sum of FLOATs, as a balanced tree."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return call("add_float", plus(parts[:middle]), plus(parts[middle:]))


def linear_form(expression: Expression, totals: Mapping[str, Total]) -> Linear | None:
    """Return an expression as a sum of totals; None if it is none.

    Args:
        expression: an expression over the columns of a grouping.
        totals: the counts and sums among its columns.
    """
    form = partial(linear_form, totals=totals)
    match expression:
        case Column(name) if name in totals:
            return {totals[name]: 1.0}
        case Call("int_to_float" | "non_temporal", (value,)):
            return form(value)
        case Call("coalesce", (value, Literal(0 | 0.0))):
            return form(value)
        case Call("neg_int" | "neg_float", (value,)):
            return _sum((form(value), -1.0))
        case Call("add_int" | "add_float", (one, other)):
            return _sum((form(one), 1.0), (form(other), 1.0))
        case Call("sub_int" | "sub_float", (one, other)):
            return _sum((form(one), 1.0), (form(other), -1.0))
        case Call("mul_int" | "mul_float", (Literal(float() | int() as factor), value)):
            return _sum((form(value), float(factor)))
        case Call("mul_int" | "mul_float", (value, Literal(float() | int() as factor))):
            return _sum((form(value), float(factor)))
        case Call("div_float", (value, Literal(float() as divisor))) if divisor:
            return _sum((form(value), 1 / divisor))
    return None


def ratio_form(
    expression: Expression, calls: Mapping[str, AggregateCall], totals: Mapping[str, Total]
) -> tuple[Linear, Linear] | None:
    """Return an expression as the ratio of two sums of totals; None if it is none.

    Args:
        expression: an expression over the columns of a grouping.
        calls: the aggregates among its columns.
        totals: the counts and sums among them.
    """
    match expression:
        case Column(name) if name in calls and calls[name].function == "avg":
            arguments = calls[name].arguments
            return {("sum", arguments): 1.0}, {("count", arguments): 1.0}
        case Call("mul_float", (Literal(float() as factor), value)) | Call(
            "mul_float", (value, Literal(float() as factor))
        ):
            found = ratio_form(value, calls, totals)
            scaled = None if found is None else _sum((found[0], factor))
            return None if found is None or scaled is None else (scaled, found[1])
        case Call("div_float", (one, other)):
            above, below = linear_form(one, totals), linear_form(other, totals)
            return None if above is None or below is None else (above, below)
    return None


def _sum(*parts: tuple[Linear | None, float]) -> Linear | None:
    made: dict[Total, float] = {}
    for form, factor in parts:
        if form is None:
            return None
        for total, own in form.items():
            made[total] = made.get(total, 0.0) + own * factor
    return made


@dataclass(slots=True)
class HiddenAggregates:
    """The aggregates of a grouping, to which others are added.

    Attributes:
        calls: the aggregates.
    """

    calls: list[AggregateCall]

    def column(self, function: str, *arguments: Expression) -> Column:
        """Return the column of an aggregate, which is added if the grouping lacks it."""
        for each in self.calls:
            if (each.function, each.arguments) == (function, arguments):
                return Column(each.name, each.type, each.is_nullable)
        entry = AGGREGATES[function]
        name = f"{HIDDEN_AGGREGATE}{len(self.calls) + 1}"
        kind = entry.result_type(arguments)
        made = AggregateCall(name, function, arguments, kind, not entry.is_never_null)
        self.calls.append(made)
        return Column(name, kind, made.is_nullable)

    def total(self, total: Total) -> Expression:
        """Return a count or sum as FLOAT, 0 for a sum of no values."""
        function, arguments = total
        return as_float(self.or_zero(self.column(function, *arguments)))

    def or_zero(self, column: Column) -> Expression:
        """Return a column, 0 in place of NULL."""
        if not column.is_nullable:
            return column
        zero = 0.0 if column.type is GsqlType.FLOAT else 0
        return call("coalesce", column, Literal(zero, column.type))

    def linear(self, form: Linear) -> Expression:
        """Return a sum of totals as FLOAT, of the packets that were kept."""
        return plus([times(number(factor), self.total(total)) for total, factor in form.items()])


@dataclass(slots=True)
class Products:
    """Sums of products over units.

    Attributes:
        aggregates: where they are computed.
        bucket: the bucket of a row, from 0 to 31; None if each row is a unit.
    """

    aggregates: HiddenAggregates
    bucket: Expression | None
    _known: dict[tuple[Total, Total], Expression] = field(default_factory=dict)

    def of_forms(self, one: Linear, other: Linear) -> Expression:
        """Return the sum over units of the product of what a unit adds to two sums of totals."""
        parts = [times(number(one[a] * other[b]), self.of(a, b)) for a, b in product(one, other)]
        return plus(parts)

    def of(self, one: Total, other: Total) -> Expression:
        """Return the sum over units of the product of what a unit adds to two totals."""
        pair = (one, other)
        if pair not in self._known:
            of_units = self._of_rows if self.bucket is None else self._of_buckets
            found = of_units(one, other)
            self._known[pair] = self._known[other, one] = found
        return self._known[pair]

    def _of_rows(self, one: Total, other: Total) -> Expression:
        for a, b in ((one, other), (other, one)):
            if a == COUNT or (a[0] == "count" and a[1][:1] == b[1][:1]):
                # A row adds 1 to the count, or 0 to both.
                return self.aggregates.total(b)
        if one == other and AGGREGATES["var_pop"].is_splittable(one[1]):
            return self._squares(one[1][0])
        column = self.aggregates.column("sum", times(_added(one), _added(other)))
        return self.aggregates.or_zero(column)

    def _squares(self, value: Expression) -> Expression:
        """Return the sum of the squares of numbers of 32 bits, as two sums of halves."""
        square = call("mul_int", value, value)
        high = call("bit_and", call("shr", square, _32), _LOW_32)
        halves = [
            self.aggregates.total(("sum", (half,)))
            for half in (call("bit_and", square, _LOW_32), high)
        ]
        return plus([halves[0], times(number(2.0**32), halves[1])])

    def _of_buckets(self, one: Total, other: Total) -> Expression:
        """Return 32/31·Σ(y_b - ȳ)(z_b - z̄) over buckets, as 32/31·(Σy_b·z_b - Σy·Σz/32)."""
        in_buckets = plus(
            [
                times(self._in_bucket(one, number_), self._in_bucket(other, number_))
                for number_ in range(BUCKETS)
            ]
        )
        whole = times(self.aggregates.total(one), self.aggregates.total(other))
        centred = call("sub_float", in_buckets, times(whole, number(1 / BUCKETS)))
        return times(number(_UNBIASED), centred)

    def _in_bucket(self, total: Total, bucket: int) -> Expression:
        """Return a total over the rows of a bucket."""
        assert self.bucket is not None
        function, arguments = total
        value = arguments[0] if arguments else Literal(1, GsqlType.INT)
        is_in = call("eq", self.bucket, Literal(bucket, GsqlType.INT))
        return self.aggregates.total(
            (function, (call("case", is_in, value, Literal(None, value.type)),))
        )


def totals_of(calls: Iterable[AggregateCall]) -> dict[str, Total]:
    """Return the counts and sums among aggregates, by name."""
    return {
        each.name: (each.function, each.arguments)
        for each in calls
        if each.function in ("count", "sum")
    }


def _added(total: Total) -> Expression:
    """Return what a row adds to a total, as FLOAT."""
    function, arguments = total
    if function == "count":
        is_missing = call("is_null", arguments[0])
        return call("case", is_missing, number(0.0), number(1.0))
    value = as_float(arguments[0])
    return call("coalesce", value, number(0.0)) if value.is_nullable else value
