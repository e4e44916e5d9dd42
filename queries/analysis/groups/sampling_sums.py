"""Sums of the sampling operator.

They are averages as quotients of sums, and sums that may exceed 64 bits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.analysis.typing.constants import apply
from gscope.queries.catalog.aggregate.halves import high_half, is_narrow, low_half
from gscope.queries.catalog.sampling.superaggregates import SUM
from gscope.queries.expressions.expressions import Column, Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.logical import AggregateCall
from gscope.queries.plan.sampling_operator import Condition
from gscope.queries.plan.trees import by_name, map_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gscope.queries.expressions.expressions import NamedExpression
    from gscope.queries.plan.sampling_operator import Superaggregate

    Aggregates = dict[tuple[str, tuple[Expression, ...]], AggregateCall]

_UPPER_UNIT = Literal(2.0**32, GsqlType.FLOAT)
"""The value of 1 in the sum of upper halves."""


def averages(aggregates: Aggregates, new_name: Callable[[], str]) -> dict[str, Expression]:
    """Replace each ``avg`` by the sums and the count that it is computed from.

    The sum of large integers is that of their halves, which do not exceed 64 bits.

    Args:
        aggregates: the aggregates of the query, which are changed.
        new_name: returns a name that no column has yet.

    Returns:
        The quotient of each average, by the name of its column.
    """

    def part(function: str, argument: Expression) -> Column:
        kind = GsqlType.INT if function == "count" else argument.type
        name, is_sum = new_name(), function == SUM
        call = AggregateCall(name, function, (argument,), kind, is_nullable=is_sum)
        aggregates[name, call.arguments] = call
        return Column(name, kind, is_sum)

    quotients: dict[str, Expression] = {}
    for key, call in list(aggregates.items()):
        if call.function != "avg":
            continue
        del aggregates[key]
        argument = call.arguments[0]
        if argument.type is GsqlType.FLOAT:
            total: Expression = part(SUM, argument)
        elif is_narrow(argument):
            total = apply("int_to_float", part(SUM, argument))
        else:
            halves = (part(SUM, half((argument,))) for half in (low_half, high_half))
            low, high = (apply("int_to_float", each) for each in halves)
            total = apply("add_float", apply("mul_float", high, _UPPER_UNIT), low)
        count = apply("int_to_float", part("count", argument))
        quotients[call.name] = apply("div_float", total, count)
    return quotients


def wide_sums(
    aggregates: Sequence[AggregateCall],
    superaggregates: Sequence[Superaggregate],
    values: Sequence[NamedExpression],
) -> tuple[str, ...]:
    """Return the names of the sums of integers that may exceed 64 bits.

    Args:
        aggregates: the aggregates of groups, over values.
        superaggregates: those of supergroups, over values.
        values: the values by name.
    """
    meant = by_name(values)
    sums = [(a.name, a.type, a.arguments[0]) for a in aggregates if a.function == SUM]
    sums += [
        (s.name, s.type, s.argument) for s in superaggregates if s.function == SUM and s.argument
    ]
    return tuple(
        name
        for name, kind, argument in sums
        if kind is GsqlType.INT and not is_narrow(computed(argument, meant))
    )


def with_quotients(
    condition: Condition | None, quotients: Mapping[str, Expression]
) -> Condition | None:
    """Return ``condition`` with averages computed from their parts."""
    if condition is None or not quotients:
        return condition
    calls = tuple(
        replace(c, arguments=tuple(computed(a, quotients) for a in c.arguments))
        for c in condition.calls
    )
    return Condition(calls, computed(condition.condition, quotients))


def computed(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """Return an expression in which ``columns`` replace those of their names."""
    return map_expression(
        expression,
        lambda part: columns.get(part.name, part) if isinstance(part, Column) else part,
    )
