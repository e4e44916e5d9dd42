"""The epochs whose answers may lack packets (control plane).

Heartbeats say when packets were lost, gaps which rows were shed. Both become ranges of epochs of
each operator, through all operators between (``engine/operators/lost_rows.py``), as soon as they
are known. A range is *marked* when its epochs are answered, in the commit of the answers. Losses
are final below the bounds that release the epochs, so an answered epoch never becomes incomplete.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gscope.engine.operators.lost_rows import (
    answered_below,
    answers_of,
    concerned_epochs,
    concerned_rows,
    counts_epochs,
    is_running,
    shown_epoch,
    windows_holding,
)
from gscope.engine.operators.window import WindowOperator
from gscope.engine.watermarks.bounds import ENDED, NO_VALUE, NOTHING
from gscope.engine.watermarks.loss_spans import spans_of_period
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.plan.program import QueryInput, StreamInput, node_inputs
from gscope.queries.streams.loss_reasons import LOG, IncompleteEpochs
from gscope.queries.streams.losses import NO_LOSSES, LostRows, added_packets
from gscope.queries.streams.messages import Extent, Heartbeat, Shed
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gscope.engine.operators.base import Operator
    from gscope.engine.watermarks.bounds import Bound, Span
    from gscope.engine.watermarks.loss_spans import Spans
    from gscope.queries.plan.program import Lfta, Program
    from gscope.queries.streams.losses import Losses, LossPeriod
    from gscope.queries.streams.messages import Message

MOST_RECENT = 16
"""The most ranges of one operator that are reported besides their counts: the latest."""

MOST_RANGES = 64
"""The most ranges of one operator and reason that wait to be marked; the oldest are then joined."""


@dataclass(frozen=True, slots=True)
class _Range:
    """Epochs of one operator that may lack packets.

    Attributes:
        reason: see ``IncompleteEpochs``.
        first: the first epoch; infinite if it is unknown.
        last: the last one; infinite if it is unknown.
        packets: number of packets lost; None if it is unknown.
    """

    reason: str
    first: Bound
    last: Bound
    packets: int | None

    def joined(self, other: _Range) -> _Range:
        return _Range(
            self.reason,
            min(self.first, other.first),
            max(self.last, other.last),
            added_packets((self.packets, other.packets)),
        )


@dataclass(slots=True)
class _Account:
    """What is known of one operator.

    Attributes:
        below: the epoch below which all are marked.
        waiting: ranges of which some epochs are not answered.
        counts: number of incomplete epochs so far, by reason.
        recent: the ranges that were marked last.
        lives_with: of a running aggregation, the reasons for which its living groups lack packets,
            with the number of packets lost.
        had_state: of a running aggregation, whether a group lived when the last step began.
    """

    below: Bound = NOTHING
    waiting: list[_Range] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    recent: list[IncompleteEpochs] = field(default_factory=list)
    lives_with: dict[str, int | None] = field(default_factory=dict)
    had_state: bool = False


class IncompleteTracker:
    """The incomplete epochs of all operators of a program.

    Args:
        program: the program.
        operators: its operators by query, inputs first.
    """

    def __init__(self, program: Program, operators: Mapping[str, Operator]) -> None:
        self._operators = operators
        self._accounts = {query: _Account() for query in operators}
        self._readers: dict[str, list[tuple[str, int]]] = {}
        self._lftas: dict[str, Lfta] = {}
        self._known: dict[str, Losses] = {}
        for query, operator in operators.items():
            for side, source in enumerate(node_inputs(operator.node)):
                for name in self._sources(program, source):
                    self._readers.setdefault(name, []).append((query, side))

    def on_message(self, message: Message) -> None:
        """Note what a message says of losses."""
        if isinstance(message, Heartbeat) and message.losses is not None:
            self._on_losses(message.stream, message.losses)
        elif isinstance(message, Shed):
            self.on_rows_lost(message.stream, message.extents, message.packets)

    def on_rows_lost(
        self, source: str, extents: Iterable[Extent], packets: int | None, reason: str = LOG
    ) -> None:
        """Note that rows of a stream or query will not be read by anyone, or lack packets."""
        for query, side in self._readers.get(source, ()):
            self.on_side_lost(query, side, extents, packets, reason)

    def on_side_lost(
        self,
        query: str,
        side: int,
        extents: Iterable[Extent],
        packets: int | None = None,
        reason: str = LOG,
    ) -> None:
        """Note that one operator will not read rows of one of its sides.

        Or it reads them, but they lack packets.
        """
        spans: Spans = {each.column: (each.least, each.greatest) for each in extents}
        self._lose(query, side, reason, packets, spans)

    def on_slices_lost(self, query: str, least: int, greatest: int) -> None:
        """Note that the slices of the open windows of an operator are lost."""
        operator = self._operators[query]
        assert isinstance(operator, WindowOperator)
        self._concern(query, 0, LOG, None, {}, windows_holding(operator, (least, greatest)))

    def on_step(self, query: str, *, had_state: bool) -> None:
        """Note, as an operator releases epochs, whether it had rows of its own before."""
        self._accounts[query].had_state = had_state

    def mark(self) -> tuple[IncompleteEpochs, ...]:
        """Return the incomplete ones of the epochs that were answered since the last call."""
        found: list[IncompleteEpochs] = []
        for query, account in self._accounts.items():
            operator = self._operators[query]
            low, high = account.below, answered_below(operator)
            if not high > low:
                continue
            account.below = high
            if account.waiting or account.lives_with:
                marked = self._marked(query, operator, account, low, high)
                account.recent = [*account.recent, *marked][-MOST_RECENT:]
                found += marked
        return tuple(found)

    @property
    def is_waiting(self) -> bool:
        """Whether epochs that are not marked yet are known to lack packets."""
        return any(each.waiting or each.lives_with for each in self._accounts.values())

    def recent(self, query: str) -> tuple[IncompleteEpochs, ...]:
        """Return the ranges of incomplete epochs of a query that were marked last."""
        return tuple(self._accounts[query].recent)

    def answers(self, marked: Iterable[IncompleteEpochs], query: str) -> tuple[LostRows, ...]:
        """Return which answers of a query may lack packets, by the values of their columns."""
        operator = self._operators[query]
        return tuple(
            LostRows(
                _extents(answers_of(operator, each.first, each.last)), each.packets, each.reason
            )
            for each in marked
            if each.query == query
        )

    def counts(self, query: str) -> dict[str, int]:
        """Return the number of incomplete epochs of a query so far, by reason."""
        return dict(self._accounts[query].counts)

    def snapshot(self, query: str) -> dict[str, Any]:
        """Return what is known of an operator, as plain JSON values; bounds may be infinite."""
        account = self._accounts[query]
        return {
            "below": account.below,
            "waiting": [
                [each.reason, each.first, each.last, each.packets] for each in account.waiting
            ],
            "counts": dict(account.counts),
            "recent": [asdict(each) for each in account.recent],
            "lives_with": account.lives_with,
        }

    def restore(self, query: str, saved: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        self._accounts[query] = _Account(
            saved["below"],
            [_Range(*each) for each in saved["waiting"]],
            Counter(saved["counts"]),
            [IncompleteEpochs(**each) for each in saved["recent"]],
            dict(saved["lives_with"]),
        )

    def _sources(self, program: Program, source: object) -> tuple[str, ...]:
        match source:
            case StreamInput(lfta=name):
                lfta = program.lfta(name)
                self._lftas |= dict.fromkeys(lfta.streams, lfta)
                return lfta.streams
            case QueryInput(query=name):
                return (name,)
            case _:
                raise AssertionError(source)

    def _on_losses(self, stream: str, losses: Losses) -> None:
        """Note the losses of a heartbeat that the one before it did not list."""
        known = self._known.get(stream, NO_LOSSES)
        if losses == known or stream not in self._lftas:
            return
        self._known[stream] = losses
        for period in losses.periods:
            if not _is_listed(period, known.periods):
                spans = _spans_of_period(self._lftas[stream], period)
                for query, side in self._readers[stream]:
                    self._lose(query, side, period.reason, period.packets, spans)
        for rows in losses.rows:
            if rows not in known.rows:
                self.on_rows_lost(stream, rows.extents, rows.packets, rows.reason)

    def _lose(self, query: str, side: int, reason: str, packets: int | None, spans: Spans) -> None:
        """Note rows that are missing at a side of an operator."""
        epochs = concerned_epochs(self._operators[query], side, spans)
        self._concern(query, side, reason, packets, spans, epochs)

    def _concern(
        self,
        query: str,
        side: int,
        reason: str,
        packets: int | None,
        spans: Spans,
        epochs: Span,
    ) -> None:
        """Note that epochs of an operator lack packets, and those of its readers."""
        operator, account = self._operators[query], self._accounts[query]
        if epochs == NO_VALUE or epochs[1] < account.below:
            return
        made = _Range(reason, *epochs, packets)
        if made not in account.waiting:
            account.waiting = _bounded([*account.waiting, made], reason)
        if not is_running(operator):
            self._concern_readers(operator, side, made, spans)

    def _concern_readers(self, operator: Operator, side: int, made: _Range, spans: Spans) -> None:
        readers = self._readers.get(operator.node.query, ())
        if readers:
            rows = concerned_rows(operator, side, spans, (made.first, made.last))
            for query, at in readers:
                self._lose(query, at, made.reason, made.packets, rows)

    def _marked(
        self, query: str, operator: Operator, account: _Account, low: Bound, high: Bound
    ) -> list[IncompleteEpochs]:
        last = high - 1 if isinstance(high, int) else high
        inside = [
            replace(each, first=max(each.first, low), last=min(each.last, last))
            for each in account.waiting
            if each.first <= last and each.last >= low
        ]
        account.waiting = [each for each in account.waiting if each.last >= high]
        if is_running(operator):
            inside = self._living(operator, account, inside, low, last)
        ranges = _disjoint(inside)
        for each in ranges:
            account.counts[each.reason] += _count(operator, each)
        return [
            IncompleteEpochs(
                query,
                each.reason,
                shown_epoch(operator, each.first),
                shown_epoch(operator, each.last),
                each.packets,
            )
            for each in ranges
        ]

    def _living(
        self,
        operator: Operator,
        account: _Account,
        inside: list[_Range],
        low: Bound,
        last: Bound,
    ) -> list[_Range]:
        """Return the epochs of a running aggregation: from a loss on, as long as a group lives."""
        if not account.had_state:
            account.lives_with = {}
        if last == ENDED:
            (side,) = operator.sides
            assert side.epoch is not None
            reached = [side.clock(side.epoch), *(each.last for each in inside)]
            last = max(low, *(each for each in reached if each != ENDED), NOTHING)
        ranges = [
            _Range(reason, low, last, packets) for reason, packets in account.lives_with.items()
        ]
        ranges += [replace(each, last=max(each.last, last)) for each in inside]
        for each in inside:
            held = account.lives_with.get(each.reason, 0)
            account.lives_with[each.reason] = added_packets((held, each.packets))
        for each in ranges:
            self._concern_readers(operator, 0, each, {})
        return ranges


def _extents(spans: Spans) -> tuple[Extent, ...]:
    return tuple(
        Extent(
            column,
            math.floor(least) if math.isfinite(least) else MIN_TIME_NS,
            math.ceil(greatest) if math.isfinite(greatest) else MAX_TIME_NS,
        )
        for column, (least, greatest) in spans.items()
    )


@lru_cache(maxsize=1024)
def _spans_of_period(lfta: Lfta, period: LossPeriod) -> Spans:
    return spans_of_period(lfta, period)


def _is_listed(period: LossPeriod, known: Iterable[LossPeriod]) -> bool:
    """Return whether a period is known, itself or as the parts from which the list joined it."""
    parts = [
        each
        for each in known
        if each.reason == period.reason
        and period.first_ns <= each.first_ns
        and each.last_ns <= period.last_ns
    ]
    if not parts:
        return False
    is_whole = (
        min(each.first_ns for each in parts) == period.first_ns
        and max(each.last_ns for each in parts) == period.last_ns
    )
    return is_whole and added_packets(each.packets for each in parts) == period.packets


def _bounded(ranges: list[_Range], reason: str) -> list[_Range]:
    """Return ranges of which at most ``MOST_RANGES`` have one reason."""
    places = [place for place, each in enumerate(ranges) if each.reason == reason]
    if len(places) > MOST_RANGES:
        first, second, *_ = sorted(places, key=lambda place: ranges[place].first)
        ranges[first] = ranges[first].joined(ranges[second])
        del ranges[second]
    return ranges


def _disjoint(ranges: Iterable[_Range]) -> list[_Range]:
    """Return ranges of which no two of one reason have an epoch in common."""
    made: list[_Range] = []
    for each in sorted(ranges, key=lambda each: (each.reason, each.first)):
        before = made[-1] if made else None
        if before is not None and before.reason == each.reason and each.first <= before.last:
            made[-1] = before.joined(each)
        else:
            made.append(each)
    return made


def _count(operator: Operator, epochs: _Range) -> int:
    """Return the number of epochs of a range; 1 if they are unknown, or if there are only rows."""
    first, last = epochs.first, epochs.last
    is_known = math.isfinite(first) and math.isfinite(last) and first >= 0
    return math.floor(last) - math.floor(first) + 1 if is_known and counts_epochs(operator) else 1
