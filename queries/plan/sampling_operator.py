"""What the sampling operator does with the tuples of a window, as expressions over named values.

Expressions read ``Column``: a value of ``Sampling.values`` (of the tuple, or of the first tuple of
a group), a superaggregate, a stateful call, and where groups are read an aggregate. Names that no
query can write begin with ``$``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Column, NamedCall
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.queries.expressions.expressions import Expression, NamedExpression
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.expressions.types import GsqlType
    from gscope.queries.plan.logical import AggregateCall, Node
    from gscope.queries.plan.program import Input

RANDOM = "$random"
"""The value that holds a random number of a tuple: 63 bits that a keyed hash gives."""

DEFAULT_MAX_GROUPS = 1_000_000
"""How many groups of a supergroup live at most, unless DEFINE has ``max_groups``."""


@dataclass(frozen=True, slots=True)
class StatefulCall(NamedCall):
    """One call of a stateful function, and the column that holds its result."""


@dataclass(frozen=True, slots=True)
class Superaggregate:
    """One superaggregate of all clauses.

    Attributes:
        name: the column that holds it.
        function: its entry in ``catalog/sampling/superaggregates.py``.
        argument: the value that it aggregates; None for ``*``.
        rank: the k of the k-th smallest value, 0 for others.
        type: the type of the result.
        is_nullable: whether the result may be NULL.
    """

    name: str
    function: str
    argument: Column | None
    rank: int
    type: GsqlType
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition, and the calls that are made before it, in their order."""

    calls: tuple[StatefulCall, ...]
    condition: Expression


@dataclass(frozen=True, slots=True)
class Sampling:
    """The clauses of the sampling operator.

    Attributes:
        supergroup: the names of the keys that make a supergroup, without the epoch.
        values: the expressions over input columns that clauses read.
        superaggregates: the superaggregates of all clauses.
        where: the conditions on a tuple, tested one after the other until one does not hold.
        updates: the calls in arguments of aggregates, made for each tuple that is kept.
        aggregates: the aggregates of a group.
        cleaning_when: the condition, tested after each tuple that is kept, that starts a cleaning;
            None if groups are never cleaned before the end of the window.
        cleaning_by: the condition on a group that keeps it in a cleaning.
        having: the condition on a group that keeps it at the end of the window; None to keep all.
        selected: the calls in SELECT.
        wide_sums: the names of those aggregates and superaggregates that are sums of integers which
            may exceed 64 bits.
        seed: the key of random numbers, from DEFINE.
        max_groups: the most groups of a supergroup that live at any time.
    """

    supergroup: tuple[str, ...]
    values: tuple[NamedExpression, ...]
    superaggregates: tuple[Superaggregate, ...]
    where: tuple[Condition, ...]
    updates: tuple[StatefulCall, ...]
    aggregates: tuple[AggregateCall, ...]
    cleaning_when: Condition | None
    cleaning_by: Condition | None
    having: Condition | None
    selected: tuple[StatefulCall, ...]
    wide_sums: tuple[str, ...]
    seed: int
    max_groups: int

    def calls(self) -> Iterator[StatefulCall]:
        """Yield all stateful calls."""
        tests = (*self.where, self.cleaning_when, self.cleaning_by, self.having)
        for test in tests:
            yield from () if test is None else test.calls
        yield from self.updates
        yield from self.selected

    @property
    def functions(self) -> frozenset[str]:
        """The names of the stateful functions that are called."""
        return frozenset(call.function for call in self.calls())


@dataclass(frozen=True, slots=True)
class PreSample:
    """Tuples that an LFTA need not ship, because the sampling operator above would reject them.

    The operator keeps a tuple if its value is among the least different ones of its supergroup so
    far. Of what an LFTA has seen itself, a tuple above that bound is above the operator's as well,
    which has seen more.

    Attributes:
        window: the column of the LFTA that is the window; None if the whole input is one.
        keys: the columns that make the supergroup; () if the whole window is one.
        value: the column that is compared.
        rank: how many least values are kept.
        time: the column with the time of a tuple, by which the operator orders tuples.
        is_distinct: whether a tuple whose value was there before changes nothing in the operator.
    """

    window: str | None
    keys: tuple[str, ...]
    value: str
    rank: int
    time: str
    is_distinct: bool


def show_pre_sample(pre_sample: PreSample) -> str:
    """Return which tuples an LFTA leaves out, as text."""
    terms = [pre_sample.window, *pre_sample.keys]
    scope = ", ".join(term for term in terms if term is not None)
    above = f"{pre_sample.value} above the {pre_sample.rank:,} least values seen"
    each = f" of each {scope}" if scope else ""
    return f"{above}{each}{', or equal to one of them' if pre_sample.is_distinct else ''}"


@dataclass(frozen=True, slots=True)
class SampleGroupBy:
    """Groups of a window that are sampled while it is open.

    Its columns are the keys, the aggregates, then the superaggregates and the calls of SELECT.

    Attributes:
        keys: the group-by terms, over the input.
        epoch: the name of the key that is the window.
        sampling: the clauses.
        schema: its columns.
    """

    input: Node
    keys: tuple[NamedExpression, ...]
    epoch: str
    sampling: Sampling
    schema: Schema

    @property
    def aggregates(self) -> tuple[AggregateCall, ...]:
        """The aggregates whose arguments are over the input."""
        values = {value.name: value.expression for value in self.sampling.values}
        return tuple(
            replace(
                each,
                arguments=tuple(values[a.name] for a in each.arguments if isinstance(a, Column)),
            )
            for each in self.sampling.aggregates
            if all(isinstance(a, Column) and a.name in values for a in each.arguments)
        )


@dataclass(frozen=True, slots=True)
class SampleNode:
    """The sampling operator over one input, released by whole windows.

    Attributes:
        predicate: the condition over input columns that tuples must satisfy before any clause sees
            them; None for all.
        keys, epoch, sampling: as of a ``SampleGroupBy``, over input columns.
        order: the time by which tuples of packets are ordered; None for rows of another query,
            which are ordered by the window and the columns that are read.
        columns: the output, over keys, aggregates, superaggregates and calls.
    """

    query: str
    input: Input
    predicate: Expression | None
    keys: tuple[NamedExpression, ...]
    epoch: str
    order: Expression | None
    sampling: Sampling
    columns: tuple[NamedExpression, ...]
    schema: Schema

    @property
    def epoch_expression(self) -> Expression:
        """The window, over input columns."""
        return next(key.expression for key in self.keys if key.name == self.epoch)
