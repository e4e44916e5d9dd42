"""What scales counts and sums of packets by the rate of each: aggregates of two nodes.

The lower node groups packets by their rate as well, and multiplies its totals by 1/p; the upper one
adds these products. ``row_rates.py`` has an example.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from gscope.queries.catalog.aggregate.halves import is_narrow
from gscope.queries.catalog.evaluate import call
from gscope.queries.catalog.scalar.estimates import REST_BITS
from gscope.queries.expressions.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    NamedExpression,
)
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import Aggregate
from gscope.queries.plan.program_sampling import RATE_COLUMN
from gscope.queries.plan.sample_columns import OF_SAMPLE, SAMPLE_GROUPS, variance_factor
from gscope.queries.plan.sampling.epoch_rates import is_rate
from gscope.queries.plan.sampling.sampled_rows import CannotMove
from gscope.queries.plan.trees import by_name, map_expression, substitute
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.plan.program import AggregationNode, Lfta

RATE = Column(RATE_COLUMN, GsqlType.FLOAT, is_nullable=False)
_REMEDY = "needs one rate: leave it out, or choose the rate with --sample-rate"

_ONE = Literal(1.0, GsqlType.FLOAT)
_WEIGHT = call("coalesce", call("div_float", _ONE, RATE), _ONE)
"""How many packets a packet of a row stands for."""

_SPREAD = map_expression(variance_factor(), lambda part: RATE if is_rate(part) else part)
"""What a sum of squares over a row's packets adds to the variance."""


@dataclass(slots=True)
class WeightedSums:
    """What the two nodes compute, which grows with what the columns of the query need.

    Attributes:
        node: the node that becomes two.
        lfta: the LFTA that it reads.
        has_single_packets: whether packets are kept or left out one by one.
        folded: the aggregates of the lower node, of packets of one rate.
        shipped: the columns of the lower node besides its keys.
        summed: the aggregates of the upper node.
    """

    node: AggregationNode
    lfta: Lfta
    has_single_packets: bool
    folded: dict[str, Aggregate] = field(default_factory=dict)
    shipped: dict[str, NamedExpression] = field(default_factory=dict)
    summed: dict[str, Aggregate] = field(default_factory=dict)

    def estimated(self, expression: Expression, scaled: frozenset[str]) -> Expression:
        """Return an output expression of the query over keys and aggregates of the upper node."""
        known = {each.name: each for each in self.node.aggregates}

        def change(part: Expression) -> Expression:
            match part:
                case Column(name) if name in scaled:
                    return self._estimate(self._total(known[name]))
                case Column(name) if name in known:
                    return self._mean(known[name])
                case Call("sample_rate"):
                    return self._least_rate()
                case Call(function, (groups,)) if function == SAMPLE_GROUPS:
                    return replace(part, arguments=(self._kept(groups),))
                case Call(function, (value, squared, *least)) if function in OF_SAMPLE:
                    estimate = change(value)
                    width = self._variance(value, estimate, squared)
                    return replace(part, arguments=(estimate, width, *map(self._kept, least)))
                case Call(arguments=arguments):
                    return replace(part, arguments=tuple(map(change, arguments)))
            return part

        return change(expression)

    def _total(self, aggregate: Aggregate) -> Aggregate:
        """Return a count or sum, of packets of one rate."""
        if aggregate.function not in ("count", "sum"):
            raise self._needs_one_rate(aggregate)
        return self.folded.setdefault(aggregate.name, aggregate)

    def _estimate(self, total: Aggregate) -> Expression:
        """Return the sum of a total's values, each times the weight of its packets."""
        if total.type is GsqlType.FLOAT:
            return self._sum(f"{total.name}$scaled", call("mul_float", _column(total), _WEIGHT))
        whole, rest = self._scaled(total)
        half = Literal(1 << (REST_BITS - 1), GsqlType.INT)
        one = Literal(1 << REST_BITS, GsqlType.INT)
        return call("add_int", whole, call("floor_div", call("add_int", rest, half), one))

    def _scaled(self, total: Aggregate) -> tuple[Column, Column]:
        """Return that sum as a whole part, and what it lacks in units of 2⁻³²."""
        is_bounded = total.function == "count" or total.is_bounded
        value = _column(total)
        return (
            self._sum(
                f"{total.name}$whole", call("scaled_whole", value, _WEIGHT), is_bounded=is_bounded
            ),
            self._sum(f"{total.name}$rest", call("scaled_rest", value, _WEIGHT), is_bounded=True),
        )

    def _mean(self, aggregate: Aggregate) -> Expression:
        """Return an average: the ratio of the estimates of the sum and of the count."""
        if aggregate.function != "avg":
            raise self._needs_one_rate(aggregate)
        of_rows = (*aggregate.arguments, *aggregate.arguments)
        sources: tuple[str | Expression, ...] = aggregate.partials or of_rows
        *sums, count = sources
        if len(sums) > 1 or not (aggregate.partials or self._is_added(aggregate)):
            message = f"{self.node.query} averages values of 64 bits, whose sums can wrap"
            raise CannotMove(message)
        kind = GsqlType.INT
        if not aggregate.partials:
            kind = aggregate.arguments[0].type
        total = self._part(aggregate, "sum", sums[0], kind, is_nullable=True)
        number = self._part(aggregate, "count", count, GsqlType.INT, is_nullable=False)
        return call("div_float", self._as_float(total), self._as_float(number))

    def _part(
        self,
        aggregate: Aggregate,
        function: str,
        source: str | Expression,
        kind: GsqlType,
        *,
        is_nullable: bool,
    ) -> Aggregate:
        """Return the sum or count of an average, of packets of one rate."""
        arguments = () if isinstance(source, str) else (source,)
        partials = (source,) if isinstance(source, str) else ()
        for each in self.node.aggregates:
            if (each.function, each.arguments, each.partials) == (function, arguments, partials):
                return self._total(each)
        name, is_bounded = f"{aggregate.name}${function}", kind is GsqlType.INT
        made = Aggregate(name, function, arguments, partials, kind, is_nullable, is_bounded)
        return self.folded.setdefault(made.name, made)

    def _as_float(self, total: Aggregate) -> Expression:
        if total.type is GsqlType.FLOAT:
            return self._estimate(total)
        whole, rest = self._scaled(total)
        unit = Literal(1 / (1 << REST_BITS), GsqlType.FLOAT)
        fraction = call("mul_float", call("int_to_float", rest), unit)
        return call("add_float", call("int_to_float", whole), fraction)

    def _kept(self, expression: Expression) -> Expression:
        """Return an expression over aggregates of all packets that were kept."""

        def change(part: Expression) -> Expression:
            if not isinstance(part, Column):
                return part
            aggregate = self._total(self._named(part))
            return self._sum(
                aggregate.name,
                _column(aggregate),
                is_bounded=aggregate.function == "count" or aggregate.is_bounded,
            )

        return map_expression(expression, change)

    def _variance(self, value: Expression, estimate: Expression, squared: Expression) -> Expression:
        """Return the square of the half width of an interval, added up over rates.

        Args:
            value: the column that the interval is of, over the aggregates of the query.
            estimate: the same, scaled.
            squared: the square, for one rate.
        """
        match squared:
            case Literal():
                return squared
            case _ if not self.has_single_packets:
                # Packets of a group are kept together, also those of different rates.
                message = (
                    f"{self.node.query} has an interval (x_low, x_high) of packets that are"
                    f" sampled by groups, which {_REMEDY}"
                )
                raise CannotMove(message)
            case Call("mul_float", (sums, Call("mul_float", (z2, factor)))) if (
                factor == variance_factor()
            ):
                return call("mul_float", self._over(sums, self._spread), z2)
            case Call(
                "mul_float",
                (
                    Call("div_float", (residual, Call("mul_float", (divisor, _)))),
                    Call("mul_float", (z2, _)),
                ),
            ):
                # Q/X² of the packets that were kept is that of all, but for the factor in Q.
                residual = self._over(residual, self._spread, value, estimate)
                divisor = self._over(divisor, self._as_float)
                relative = call("div_float", residual, call("mul_float", divisor, divisor))
                return call("mul_float", relative, z2)
        message = f"{self.node.query} has an interval (x_low, x_high), which {_REMEDY}"
        raise CannotMove(message)

    def _spread(self, total: Aggregate) -> Expression:
        """Return the sum of a total's values, each times what its packets add to the variance."""
        value: Expression = _column(total)
        if total.type is not GsqlType.FLOAT:
            value = call("int_to_float", value)
        return self._sum(f"{total.name}$spread", call("mul_float", value, _SPREAD))

    def _over(
        self,
        expression: Expression,
        leaf: Callable[[Aggregate], Expression],
        value: Expression | None = None,
        estimate: Expression | None = None,
    ) -> Expression:
        """Return sums of FLOATs with ``leaf`` of each total, and ``estimate`` for ``value``."""

        def change(part: Expression) -> Expression:
            match part:
                case _ if part == value and estimate is not None:
                    return estimate
                case Column():
                    return leaf(self._total(self._named(part)))
                case Call("int_to_float", (inner,)):
                    return change(inner)
                case Call("coalesce", (inner, Literal())):
                    return call("coalesce", change(inner), Literal(0.0, GsqlType.FLOAT))
                case Call(function, arguments):
                    return call(function, *map(change, arguments))
            return part

        return change(expression)

    def _least_rate(self) -> Column:
        self.summed.setdefault(
            RATE_COLUMN, Aggregate(RATE_COLUMN, "min", (RATE,), (), GsqlType.FLOAT, False)
        )
        return RATE

    def _is_added(self, aggregate: Aggregate) -> bool:
        """Return whether a sum of the argument is exact in 64 bits, or one of FLOAT."""
        value = substitute(aggregate.arguments[0], by_name(self.lfta.columns))
        return value.type is GsqlType.FLOAT or is_narrow(value)

    def _needs_one_rate(self, aggregate: Aggregate) -> CannotMove:
        what = f"{aggregate.function} ({aggregate.name})"
        message = f"{self.node.query} computes {what}, which {_REMEDY}"
        return CannotMove(message)

    def _named(self, column: Column) -> Aggregate:
        return next(each for each in self.node.aggregates if each.name == column.name)

    def _sum(self, name: str, value: Expression, *, is_bounded: bool = False) -> Column:
        """Return the sum of a column of the lower node, under its name."""
        self.shipped.setdefault(name, NamedExpression(name, value))
        column = Column(name, value.type, value.is_nullable)
        made = Aggregate(name, "sum", (column,), (), value.type, value.is_nullable, is_bounded)
        self.summed.setdefault(name, made)
        return column


def _column(aggregate: Aggregate) -> Column:
    return Column(aggregate.name, aggregate.type, aggregate.is_nullable)
