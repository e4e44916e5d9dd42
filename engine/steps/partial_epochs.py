"""Answers that lack a host: which epochs of which query went on without it (control plane).

The heartbeats of a stream carry its gaps (``HostGap``) in a column of the stream. Here they become
packet times, and these the epochs of every operator above the stream, as far as it has answered
them. A query whose epochs do not follow from packet times has the gap without epochs.
"""

from __future__ import annotations

from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

from gscope.engine.watermarks.bounds import ENDED
from gscope.engine.watermarks.event_time import EventTimes
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.plan.program import QueryInput, StreamInput, node_inputs
from gscope.queries.streams.gaps import HostGap
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.plan.program import Program


@dataclass(frozen=True, slots=True)
class PartialAnswer:
    """Epochs of a query that were answered without a host.

    Attributes:
        host: the name of the host.
        first_epoch: the first of them; None if the host was never there, or if the query has no
            epochs that follow from packet times.
        last_epoch: the last of them; None if no later epoch is known to be complete.
        from_ns: when the first epoch begins, nanoseconds since 1970; None as above.
        to_ns: when the last epoch ends; None as above.
    """

    host: str
    first_epoch: int | None
    last_epoch: int | None
    from_ns: int | None
    to_ns: int | None


class PartialEpochs:
    """The gaps of all streams, and what they mean for each query.

    Args:
        program: the operators.
    """

    def __init__(self, program: Program) -> None:
        self._times = EventTimes(program)
        self._lftas = {stream: lfta.name for lfta in program.lftas for stream in lfta.streams}
        self._gaps: dict[str, tuple[HostGap, ...]] = {}
        self._streams: dict[str, frozenset[str]] = {}
        for node in program.nodes:
            found: set[str] = set()
            for source in node_inputs(node):
                match source:
                    case StreamInput(lfta=name):
                        found |= set(program.lfta(name).streams)
                    case QueryInput(query=name):
                        found |= self._streams[name]
            self._streams[node.query] = frozenset(found)

    def on_gaps(self, stream: str, gaps: tuple[HostGap, ...]) -> None:
        """Take the gaps of a heartbeat, which include all earlier ones."""
        self._gaps[stream] = gaps

    def of(self, query: str, watermark: Bound) -> tuple[PartialAnswer, ...]:
        """Return the answered epochs of a query that lack a host, by host and time.

        Args:
            query: the query.
            watermark: its epochs below are answered.
        """
        if not self._gaps:
            return ()
        found = (
            self._partial(query, self._lftas[stream], gap, watermark)
            for stream in sorted(self._streams[query])
            for gap in self._gaps.get(stream, ())
        )
        return tuple(_joined(each for each in found if each is not None))

    def snapshot(self, query: str) -> dict[str, Any]:
        """Return the gaps of the streams below a query as plain JSON values."""
        return {
            stream: [[gap.host, gap.column, gap.least, gap.end] for gap in gaps]
            for stream, gaps in self._gaps.items()
            if stream in self._streams[query]
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        for stream, gaps in saved.items():
            self._gaps[stream] = tuple(HostGap(*gap) for gap in gaps)

    def _partial(
        self, query: str, lfta: str, gap: HostGap, watermark: Bound
    ) -> PartialAnswer | None:
        """Return the answered epochs of a gap; None if it has none."""
        from_ns = self._time_of(lfta, gap, gap.least) if gap.least > MIN_TIME_NS else None
        to_ns = self._time_of(lfta, gap, gap.end) if gap.end < MAX_TIME_NS else None
        first = None if from_ns is None else self._times.epoch_at(query, from_ns)
        last = None if to_ns is None else self._times.epoch_at(query, to_ns - 1)
        if watermark != ENDED and not self._times.has_epochs(query):
            return PartialAnswer(gap.host, None, None, from_ns, to_ns)
        if isfinite(watermark):
            answered = ceil(watermark) - 1
            last = answered if last is None else min(last, answered)
        elif watermark != ENDED:
            return None
        if first is not None and last is not None and last < first:
            return None
        return PartialAnswer(
            gap.host,
            first,
            last,
            None if first is None else self._times.of(query, first),
            None if last is None else self._times.of(query, last + 1),
        )

    def _time_of(self, lfta: str, gap: HostGap, value: int) -> int | None:
        return self._times.time_of(StreamInput(lfta), gap.column, value)


def _joined(found: Iterable[PartialAnswer]) -> list[PartialAnswer]:
    """Return what several streams of a query lack, epochs that follow each other as one range."""
    joined: list[PartialAnswer] = []
    for each in sorted(set(found), key=_order):
        last = joined[-1] if joined else None
        if last is not None and last.host == each.host and _touches(last, each):
            joined[-1] = _both(last, each)
        else:
            joined.append(each)
    return joined


def _order(each: PartialAnswer) -> tuple[str, float, float]:
    first = float("-inf") if each.first_epoch is None else each.first_epoch
    last = float("inf") if each.last_epoch is None else each.last_epoch
    return each.host, first, last


def _touches(before: PartialAnswer, after: PartialAnswer) -> bool:
    if before.last_epoch is None or after.first_epoch is None:
        return True
    return after.first_epoch <= before.last_epoch + 1


def _both(before: PartialAnswer, after: PartialAnswer) -> PartialAnswer:
    is_longer = before.last_epoch is not None and (
        after.last_epoch is None or after.last_epoch > before.last_epoch
    )
    end = after if is_longer else before
    return PartialAnswer(before.host, before.first_epoch, end.last_epoch, before.from_ns, end.to_ns)
