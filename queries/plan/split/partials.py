"""Partial aggregates: what an LFTA folds, and the HFTA combines."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from gscope.queries.catalog.aggregate.entry import constants_of
from gscope.queries.catalog.aggregate.halves import is_narrow
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.aggregates import AGGREGATES, partial_type
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import Aggregate, Partial
from gscope.queries.plan.split.border import INTERFACE, is_low, is_low_key
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.logical import AggregateCall
    from gscope.queries.plan.split.border import Border


def can_run_low(call: AggregateCall) -> bool:
    """Return whether an LFTA can compute the partial half of ``call``."""
    entry = AGGREGATES[call.function]
    if not entry.is_splittable(call.arguments):
        return False
    if entry.joins_key and not is_low_key(entry.joined(call.arguments)):
        return False
    folded = [rule.argument(call.arguments) for rule in entry.rules(call.arguments)]
    return all(argument is None or is_low(argument) for argument in folded)


def is_bounded(call: AggregateCall) -> bool:
    """Return whether the values of ``call`` are so small that no sum of them exceeds 64 bits."""
    return call.type is GsqlType.INT and bool(call.arguments) and is_narrow(call.arguments[0])


@dataclass(slots=True)
class Partials:
    """The partials of one LFTA, each computed once for all aggregates that use it.

    Attributes:
        border: ships the arguments that join the group key.
        made: the partials so far, in order.
    """

    border: Border
    made: list[Partial] = field(default_factory=list)

    def add(self, call: AggregateCall) -> Aggregate:
        """Return the final half of ``call``, reading partials of this LFTA."""
        entry = AGGREGATES[call.function]
        names = tuple(
            self._partial(r.op, r.argument(call.arguments)) for r in entry.rules(call.arguments)
        )
        arguments: tuple[Expression, ...] = ()
        if entry.joins_key:
            joined = self.border.ship(entry.joined(call.arguments))
            arguments = (joined, *constants_of(call.arguments))
        return Aggregate(
            call.name,
            call.function,
            arguments,
            names,
            call.type,
            call.is_nullable,
            is_bounded(call),
        )

    def _partial(self, op: PartialOp, argument: Expression | None) -> str:
        if op is PartialOp.COUNT and argument is not None and not argument.is_nullable:
            argument = None
        for made in self.made:
            if made.op is op and made.argument == argument:
                return made.name
        name = f"{op.value}{len(self.made)}"
        while name in self.border.shipped.values() or name == INTERFACE:
            name += "_"
        kind = partial_type(op, argument)
        is_nullable = op is not PartialOp.COUNT and argument is not None and argument.is_nullable
        self.made.append(Partial(name, op, argument, kind, is_nullable))
        return name
