"""The split of groups that live across epochs.

Each running aggregate reads plain aggregates of every epoch (its inputs), so that an epoch is
reduced as in any other aggregation: partially low and finally high, or high only where an LFTA
cannot.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.running import DISTINCT_VALUES, RUNNING
from gscope.queries.expressions.expressions import Literal
from gscope.queries.plan.logical import AggregateCall, GroupBy
from gscope.queries.plan.program import Aggregate, RunningAggregate
from gscope.queries.plan.split.border import is_low_key
from gscope.queries.plan.split.partials import can_run_low, is_bounded
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.logical import RunningGroupBy
    from gscope.queries.plan.split.partials import Partials


@dataclass(frozen=True, slots=True)
class EpochCalls:
    """The aggregates of a running grouping, by epoch and over epochs.

    Attributes:
        calls: what is computed of each epoch alone: plain aggregates, and ``distinct_values``,
            which no query can call.
        running: what is folded over the epochs: the aggregates with state, over the columns of
            ``calls``.
    """

    calls: tuple[AggregateCall, ...]
    running: tuple[RunningAggregate, ...]


def epoch_calls(group: GroupBy | RunningGroupBy) -> EpochCalls:
    """Return the aggregates of ``group`` by epoch and over epochs; shared inputs occur once."""
    if isinstance(group, GroupBy):
        return EpochCalls(group.aggregates, ())
    plain = [call for call in group.aggregates if call.function not in RUNNING]
    inputs = _EpochCallCollector(
        list(plain), {*(k.name for k in group.keys), *(a.name for a in group.aggregates)}
    )
    running = tuple(inputs.running(call) for call in group.aggregates if call.function in RUNNING)
    return EpochCalls(tuple(inputs.calls), running)


def can_run_epochs_low(calls: Sequence[AggregateCall]) -> bool:
    """Return whether an LFTA can compute the partial half of all ``calls``."""
    return all(
        all(map(is_low_key, call.arguments))
        if call.function == DISTINCT_VALUES
        else can_run_low(call)
        for call in calls
    )


def add_partials(calls: Sequence[AggregateCall], partials: Partials) -> tuple[Aggregate, ...]:
    """Return the final halves of ``calls``, reading partials of an LFTA."""
    made = []
    for call in calls:
        if call.function == DISTINCT_VALUES:
            # Its argument joins the low-level key, like that of count_dups.
            joined = tuple(partials.border.ship(argument) for argument in call.arguments)
            made.append(
                Aggregate(call.name, call.function, joined, (), call.type, call.is_nullable)
            )
        else:
            made.append(partials.add(call))
    return tuple(made)


def aggregates_of_rows(
    calls: Sequence[AggregateCall], lift: Callable[[Expression], Expression] = lambda e: e
) -> tuple[Aggregate, ...]:
    """Return ``calls`` over plain rows; ``lift`` rewrites their arguments to read them."""
    return tuple(
        Aggregate(
            c.name,
            c.function,
            tuple(lift(a) for a in c.arguments),
            (),
            c.type,
            c.is_nullable,
            is_bounded(c),
        )
        for c in calls
    )


@dataclass(slots=True)
class _EpochCallCollector:
    """Collects the calls of each epoch.

    Attributes:
        calls: the calls so far.
        taken: the column names in use.
    """

    calls: list[AggregateCall]
    taken: set[str] = field(default_factory=set)

    def running(self, call: AggregateCall) -> RunningAggregate:
        entry = RUNNING[call.function]
        split = len(call.arguments) - len(entry.constants)
        constants = [a.value for a in call.arguments[split:] if isinstance(a, Literal)]
        inputs = tuple(self._input(*each) for each in entry.inputs_of(call.arguments[:split]))
        return RunningAggregate(
            call.name, call.function, inputs, tuple(constants), call.type, call.is_nullable
        )

    def _input(self, function: str, arguments: tuple[Expression, ...]) -> str:
        for call in self.calls:
            if (call.function, call.arguments) == (function, arguments):
                return call.name
        name = f"{function}_{len(self.calls)}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        if function == DISTINCT_VALUES:
            made = AggregateCall(name, function, arguments, arguments[0].type, is_nullable=False)
        else:
            entry = AGGREGATES[function]
            kind, is_nullable = entry.result_type(arguments), not entry.is_never_null
            made = AggregateCall(name, function, arguments, kind, is_nullable)
        self.calls.append(made)
        return name
