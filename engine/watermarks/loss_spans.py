"""The rows that lost packets would have been in: the spans of their columns (control plane)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.watermarks.bounds import ANYTHING, span_of
from gscope.queries.expressions.expressions import PacketField
from gscope.queries.plan.unbounded_search import first_reached
from gscope.queries.streams.loss_reasons import RESTART

if TYPE_CHECKING:
    from gscope.engine.watermarks.bounds import Span
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Lfta
    from gscope.queries.streams.losses import LossPeriod

Spans = dict[str, "Span"]
"""The spans of columns, by name; a column that is missing may hold any value."""

_NS_PER_SECOND = 1_000_000_000


def spans_of_period(lfta: Lfta, period: LossPeriod) -> Spans:
    """Return the spans of the temporal columns of an LFTA's rows over a period of packet time.

    With a daemon, the groups of its open epochs are lost as well. These may hold packets from the
    beginning of the epoch on.
    """
    first_ns, last_ns = period.first_ns, period.last_ns
    named = {each.name: each.expression for each in (*lfta.keys, *lfta.columns)}
    if period.reason == RESTART and lfta.epoch is not None and lfta.epoch in named:
        first_ns = _begin_of_epoch(named[lfta.epoch], first_ns)
    temporal = (column.name for column in lfta.schema.temporal)
    spans = {name: _span(named[name], first_ns, last_ns) for name in temporal if name in named}
    return {name: span for name, span in spans.items() if span != ANYTHING}


def _begin_of_epoch(epoch: Expression, time_ns: int) -> int:
    """Return the earliest time of the epoch of ``time_ns``; itself if that is unknown."""
    value = _span(epoch, time_ns, time_ns)
    if value == ANYTHING:
        return time_ns
    back_ns = first_reached(lambda back: _span(epoch, time_ns - back, time_ns - back) < value, 1)
    return time_ns if back_ns is None else time_ns - back_ns + 1


def _span(expression: Expression, first_ns: int, last_ns: int) -> Span:
    seconds = first_ns // _NS_PER_SECOND, last_ns // _NS_PER_SECOND
    spans = {"time": seconds, "timestamp": (first_ns, last_ns), "time_ns": (first_ns, last_ns)}
    return span_of(
        expression, lambda part: spans.get(part.name) if isinstance(part, PacketField) else None
    )
