"""The column ``sample_rate`` where rates follow the load: the rate of the epoch of each row.

Counts and sums over whole rows are scaled by the rate of the epoch that counts them.

A node that reads it is evaluated, in each step, with the rates of the epochs of that step::

    SELECT tb, …, sample_rate     →     CASE WHEN tb < 28333 THEN 1.0 … ELSE 0.25 END
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Call, Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import AggregationNode, JoinNode
from gscope.queries.plan.sampling.scaling import mapped, scaled_by, with_scaled
from gscope.queries.plan.window_node import WindowNode
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.expressions.expressions import Column
    from gscope.queries.plan.program import HftaNode


@dataclass(frozen=True, slots=True)
class RateReader:
    """The epochs whose rates a node reads.

    Attributes:
        query: the node whose epochs they are: itself, or the one whose rows it passes on.
        inputs: for each input the epoch over its columns.
        above: the epoch over what the columns of the node are computed from.
        scaled: the aggregates that are multiplied by 1/rate.
    """

    query: str
    inputs: tuple[Expression, ...]
    above: Expression
    scaled: tuple[str, ...] = ()


def reads_rate(node: HftaNode) -> bool:
    """Return whether a node reads the rate of the sample."""
    found: list[Expression] = []

    def note(part: Expression) -> Expression:
        if is_rate(part):
            found.append(part)
        return part

    mapped(node, note)
    return bool(found)


def is_rate(part: Expression) -> bool:
    """Return whether an expression is the column ``sample_rate``."""
    return isinstance(part, Call) and part.function == "sample_rate"


def with_epoch_rates(
    node: HftaNode, reader: RateReader, rates: Sequence[tuple[int, float]], last: float
) -> HftaNode:
    """Return a node with the rates of its epochs in place of ``sample_rate``, and what they scale.

    Args:
        node: the node.
        reader: the epochs.
        rates: epochs in rising order, each with the rate of all epochs below it and not below the
            one before.
        last: the rate of all other epochs.
    """

    def bound(epoch: Expression) -> Callable[[Expression], Expression]:
        parts: list[Expression] = []
        for end, rate in rates:
            parts += [call("lt", epoch, Literal(end, epoch.type)), Literal(rate, GsqlType.FLOAT)]
        known: Expression = Literal(last, GsqlType.FLOAT)
        value = call("case", *parts, known) if parts else known
        return lambda part: value if is_rate(part) else part

    if reader.scaled:

        def multiplied(column: Column) -> Expression:
            parts: list[Expression] = []
            for end, rate in rates:
                parts += [call("lt", reader.above, Literal(end, reader.above.type))]
                parts += [scaled_by(column, rate)]
            known = scaled_by(column, last)
            return call("case", *parts, known) if parts else known

        node = with_scaled(node, frozenset(reader.scaled), multiplied)
    left, right = bound(reader.inputs[0]), bound(reader.inputs[-1])
    above = bound(reader.above)
    match node:
        case JoinNode():
            return replace(
                node,
                predicates=(mapped(node.predicates[0], left), mapped(node.predicates[1], right)),
                keys=tuple((mapped(a, left), mapped(b, right)) for a, b in node.keys),
                residual=mapped(node.residual, above),
                columns=mapped(node.columns, above),
            )
        case AggregationNode():
            return replace(
                node,
                predicate=mapped(node.predicate, left),
                keys=mapped(node.keys, left),
                aggregates=mapped(node.aggregates, left),
                having=mapped(node.having, above),
                columns=mapped(node.columns, above),
            )
        case WindowNode():
            return replace(
                node, having=mapped(node.having, above), columns=mapped(node.columns, above)
            )
        case _:
            changed: HftaNode = mapped(node, above)
            return changed
