"""Pre-samples: LFTAs do not ship the tuples that the sampling operator above would reject.

    WHERE HX <= Kth_smallest_value$(HX, 64)
    CLEANING_WHEN count_distinct$(*) >= 128 CLEANING_BY HX <= Kth_smallest_value$(HX, 64)

The operator rejects a tuple whose HX is above the 64th smallest different one of its supergroup so
far. An LFTA knows those that it has seen itself, on one interface and in one lane. These are fewer,
so its 64th smallest one is at least that of the operator: above it, WHERE rejects the tuple, and a
tuple that WHERE rejects has no effect. The answer is the same, bit for bit, if

- this is the only condition of WHERE that depends on the window, and the LFTA tests all others;
- cleanings remove no group with one of the least values, so that the bound never rises;
- a group has one value, and cleanings begin before ``max_groups`` are reached: a value that was
  crowded out would be missing in the operator's bound, and not in that of the LFTA;
- nothing counts tuples that WHERE rejects, as random numbers do, which depend on their places.

If the query has no aggregates, a tuple of a value that was there before changes nothing either.

The other samplers have no pre-sample. Threshold sampling adds the weight of each small tuple to a
counter, and lossy counting ends a bucket at each w-th tuple: both depend on every tuple, in the
order of all interfaces together. The random numbers of reservoirs are those of places in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.catalog.sampling.superaggregates import COUNT_DISTINCT, KTH_SMALLEST
from gscope.queries.expressions.expressions import Call, Column, Literal
from gscope.queries.expressions.types import HASHED_TYPES, GsqlType
from gscope.queries.plan.program import StreamInput, node_inputs
from gscope.queries.plan.sampling_operator import RANDOM, PreSample, SampleNode
from gscope.queries.plan.split.border import INTERFACE

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Lfta, Program
    from gscope.queries.plan.sampling_operator import Sampling, Superaggregate

MOST_RANK = 4096
"""The greatest k of a k-th smallest value that LFTAs keep: they hold k values for a supergroup."""

MOST_TERMS = 10
"""The most terms of a supergroup of which LFTAs keep values."""


def with_pre_samples(program: Program) -> Program:
    """Return ``program`` with pre-samples.

    Each LFTA whose readers all reject the same tuples has one.
    """
    return replace(program, lftas=tuple(_with_pre_sample(each, program) for each in program.lftas))


def _with_pre_sample(lfta: Lfta, program: Program) -> Lfta:
    stream = StreamInput(lfta.name)
    readers = [node for node in program.nodes if stream in node_inputs(node)]
    if lfta.is_aggregation or lfta.declared or stream in [of for _, of in program.results]:
        return lfta
    found = [_pre_sample(each, lfta) if isinstance(each, SampleNode) else None for each in readers]
    known = [each for each in found if each is not None]
    if not known or len(known) < len(readers):
        return lfta
    least = known[0]
    for each in known[1:]:
        is_distinct = least.is_distinct and each.is_distinct
        rank = max(least.rank, each.rank)
        if replace(each, rank=0, is_distinct=True) != replace(least, rank=0, is_distinct=True):
            return lfta
        least = replace(least, rank=rank, is_distinct=is_distinct)
    return replace(lfta, pre_sample=least)


def _pre_sample(node: SampleNode, lfta: Lfta) -> PreSample | None:
    """Return what ``node`` would reject of the tuples of ``lfta``; None if that is not known."""
    sampling, order = node.sampling, node.order
    bound = _bound(sampling)
    if bound is None or node.predicate is not None or not isinstance(order, Column):
        return None
    values = {value.name: value.expression for value in sampling.values}
    assert bound.argument is not None
    value = values[bound.argument.name]
    terms = {key.name: key.expression for key in node.keys}
    others = [n for n in terms if n != node.epoch and n not in sampling.supergroup]
    if [terms[name] for name in others] != [value] or not _is_never_crowded(sampling, bound):
        return None
    window = terms[node.epoch]
    # A constant is the same for all tuples, and the interface for all of a stream.
    supergroup = [
        e
        for e in map(terms.__getitem__, sampling.supergroup)
        if not isinstance(e, Literal) and not (isinstance(e, Column) and e.name == INTERFACE)
    ]
    if len(supergroup) > MOST_TERMS:
        return None
    moving = [value, *supergroup, *([] if isinstance(window, Literal) else [window])]
    shipped = {column.name for column in lfta.columns}
    if not all(
        isinstance(e, Column) and e.name in shipped and e.type in HASHED_TYPES for e in moving
    ):
        return None
    assert isinstance(value, Column)
    return PreSample(
        window=window.name if isinstance(window, Column) else None,
        keys=tuple(e.name for e in supergroup if isinstance(e, Column)),
        value=value.name,
        rank=bound.rank,
        time=order.name,
        is_distinct=_ignores_repetitions(sampling),
    )


def _bound(sampling: Sampling) -> Superaggregate | None:
    """Return the k-th smallest value that WHERE compares with, if that is all that it does."""
    if len(sampling.where) != 1 or sampling.where[0].calls:
        return None
    if any(s.argument is not None and s.argument.name == RANDOM for s in sampling.superaggregates):
        return None
    bound = _compared(sampling, sampling.where[0].condition)
    return bound if bound is not None and bound.rank <= MOST_RANK else None


def _compared(sampling: Sampling, condition: Expression) -> Superaggregate | None:
    """Return the superaggregate of ``x <= Kth_smallest_value$(x, k)``.

    None for other conditions.
    """
    if not isinstance(condition, Call) or condition.function not in ("le", "ge"):
        return None
    low, high = condition.arguments if condition.function == "le" else condition.arguments[::-1]
    return next(
        (
            each
            for each in sampling.superaggregates
            if each.function == KTH_SMALLEST
            and each.type is GsqlType.INT
            and each.argument == low
            and isinstance(high, Column)
            and each.name == high.name
        ),
        None,
    )


def _is_never_crowded(sampling: Sampling, bound: Superaggregate) -> bool:
    """Return whether cleanings keep the least values, and live groups below ``max_groups``."""
    when, by = sampling.cleaning_when, sampling.cleaning_by
    if when is None or by is None or when.calls or by.calls:
        return False
    kept = _compared(sampling, by.condition)
    if kept is None or kept.argument != bound.argument or kept.rank < bound.rank:
        return False
    most = _most_before_cleaning(sampling, when.condition)
    return most is not None and max(most, kept.rank) < sampling.max_groups


def _most_before_cleaning(sampling: Sampling, condition: Expression) -> int | None:
    """Return how many groups live without a cleaning: n of ``count_distinct$(*) > n``."""
    if not isinstance(condition, Call) or condition.function not in ("ge", "gt", "le", "lt"):
        return None
    high, low = condition.arguments
    if condition.function in ("le", "lt"):
        high, low = low, high
    groups = [
        s.name
        for s in sampling.superaggregates
        if s.function == COUNT_DISTINCT and s.argument is None
    ]
    if not isinstance(high, Column) or high.name not in groups or not isinstance(low, Literal):
        return None
    if not isinstance(low.value, int) or low.type is not GsqlType.INT:
        return None
    return low.value - (1 if condition.function in ("ge", "le") else 0)


def _ignores_repetitions(sampling: Sampling) -> bool:
    """Return whether a tuple of a live group changes nothing."""
    return (
        not sampling.aggregates
        and not sampling.updates
        and all(s.function in (KTH_SMALLEST, COUNT_DISTINCT) for s in sampling.superaggregates)
    )
