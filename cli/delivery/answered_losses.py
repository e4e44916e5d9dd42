"""Epochs that lack packets, of results that other hosts have answered.

They come from the heartbeats of their streams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.watermarks.loss_spans import spans_of_period
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.loss_reasons import IncompleteEpochs
from gscope.queries.streams.losses import NO_LOSSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.queries.plan.program import Lfta
    from gscope.queries.streams.losses import Losses


class AnsweredLosses:
    """The losses of the streams of ``lfta``, whose rows are answers.

    Their epochs are the values of the first temporal column.
    """

    def __init__(self, lfta: Lfta) -> None:
        self._lfta = lfta
        self._column = lfta.schema.temporal[0].name
        self._known = NO_LOSSES

    def new(self, losses: Losses) -> Iterator[IncompleteEpochs]:
        """Yield what the losses of a heartbeat list beyond those of the one before."""
        known, self._known = self._known, losses
        query = self._lfta.query
        for rows in losses.rows:
            if rows not in known.rows:
                extents = {each.column: (each.least, each.greatest) for each in rows.extents}
                least, greatest = extents.get(self._column, (MIN_TIME_NS, MAX_TIME_NS))
                first = None if least <= MIN_TIME_NS else least
                last = None if greatest >= MAX_TIME_NS else greatest
                yield IncompleteEpochs(query, rows.reason, first, last, rows.packets)
        for period in losses.periods:
            if period not in known.periods:
                span = spans_of_period(self._lfta, period).get(self._column)
                first, last = (None, None) if span is None else map(int, span)
                yield IncompleteEpochs(query, period.reason, first, last, period.packets)
