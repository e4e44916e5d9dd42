"""When packets were lost, which heartbeats carry from a stream's writer to its readers.

A capture cannot say which rows a lost packet would have changed, but it can say when the packet
came. So a reader knows the epochs whose answers may lack something, and all other answers are
exact. A list of losses is cumulative: the last heartbeat lists all of a run. Below the bound that a
heartbeat promises its list is final.

::

    readings of the kernel's counter    ──┬──────────────┬──────────────┬──►  packet time
                                          0              0             12
    a loss of 12 packets                                 └──────────────┘
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.int64 import MAX_INT, MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.loss_reasons import LOG, REASONS

# Relays read them from files, by their annotations.
from gscope.queries.streams.messages import Extent, enclosing_extents
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_LOSSES = 32
"""The most periods, and the most gaps, of a list. Beyond it, losses of one reason are joined: those
that touch, then the oldest two."""


@dataclass(frozen=True, slots=True)
class LossPeriod:
    """A period in which packets were lost.

    Attributes:
        reason: one of ``loss_reasons.REASONS``.
        first_ns: the earliest time that a lost packet may have, in nanoseconds since 1970;
            ``MIN_TIME_NS`` if that is unknown.
        last_ns: the latest time that one may have.
        packets: number of packets lost; None if it is unknown.
    """

    reason: str
    first_ns: int
    last_ns: int
    packets: int | None = None

    def joined(self, other: LossPeriod) -> LossPeriod:
        """Return a period that includes both; they have the same reason."""
        return LossPeriod(
            self.reason,
            min(self.first_ns, other.first_ns),
            max(self.last_ns, other.last_ns),
            added_packets((self.packets, other.packets)),
        )

    def touches(self, later: LossPeriod) -> bool:
        """Return whether no packet can be between this period and ``later``.

        ``later`` does not begin before this period.
        """
        return self.reason == later.reason and later.first_ns <= self.last_ns + 1


@dataclass(frozen=True, slots=True)
class LostRows:
    """Rows that the stream's reader does not get, or that may lack packets.

    Attributes:
        extents: the extent of each temporal column of the stream; a column that is missing may hold
            any value.
        packets: number of packets that the rows stood for, or lack; None if it is unknown.
        reason: one of ``loss_reasons.REASONS``: ``LOG`` for rows that were shed between their
            capture and the reader, the others for answers that may lack packets.
    """

    extents: tuple[Extent, ...]
    packets: int | None = None
    reason: str = LOG

    def joined(self, other: LostRows) -> LostRows:
        """Return rows of both; they have the same reason."""
        extents = enclosing_extents((self.extents, other.extents))
        return LostRows(extents, added_packets((self.packets, other.packets)), self.reason)


@dataclass(frozen=True, slots=True)
class Losses:
    """What is missing from a stream.

    Attributes:
        periods: periods in which packets were lost before they became rows, by their beginning.
        rows: rows that a reader does not get or that may lack packets, oldest first.
    """

    periods: tuple[LossPeriod, ...] = ()
    rows: tuple[LostRows, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.periods or self.rows)

    def with_period(self, period: LossPeriod) -> Losses:
        """Return these losses and another one."""
        return Losses(_bounded_periods([*self.periods, period]), self.rows)

    def with_rows(self, rows: LostRows) -> Losses:
        """Return these losses and rows that were shed later."""
        return Losses(self.periods, _bounded_rows([*self.rows, rows]))


NO_LOSSES = Losses()


def united(losses: Iterable[Losses]) -> Losses:
    """Return the losses of several streams, or of one at several times, as one list.

    A loss that several of them list is one loss.
    """
    held = list(losses)
    periods = dict.fromkeys(period for each in held for period in each.periods)
    rows = dict.fromkeys(lost for each in held for lost in each.rows)
    return Losses(_bounded_periods(periods), _bounded_rows(list(rows)))


def losses_of(periods: Sequence[LossPeriod], rows: Sequence[LostRows]) -> Losses:
    """Return losses that another process sent.

    Raises:
        ValueError: no writer sends such a list.
    """
    is_sound = (
        len(periods) <= MOST_LOSSES
        and len(rows) <= MOST_LOSSES
        and all(
            each.reason in REASONS
            and MIN_TIME_NS <= each.first_ns <= each.last_ns <= MAX_TIME_NS
            and (each.packets is None or 0 <= each.packets <= MAX_INT)
            for each in periods
        )
        and all(
            each.reason in REASONS and (each.packets is None or 0 <= each.packets <= MAX_INT)
            for each in rows
        )
    )
    if not is_sound:
        problem = "invalid list of losses"
        raise ValueError(problem)
    return Losses(tuple(periods), tuple(rows))


def added_packets(counts: Iterable[int | None]) -> int | None:
    """Return the sum of numbers of packets, at most that of 64 bits; None if one is unknown."""
    total = 0
    for each in counts:
        if each is None:
            return None
        total = min(MAX_INT, total + each)
    return total


def _bounded_periods(periods: Iterable[LossPeriod]) -> tuple[LossPeriod, ...]:
    kept = sorted(periods, key=lambda each: (each.first_ns, each.last_ns))
    while len(kept) > MOST_LOSSES:
        pairs = [
            (number, later)
            for number, each in enumerate(kept)
            if (later := _next_of_reason(kept, number)) is not None and each.touches(kept[later])
        ]
        first, second = pairs[0] if pairs else _oldest_pair(kept)
        kept[first] = kept[first].joined(kept.pop(second))
    return tuple(kept)


def _next_of_reason(periods: Sequence[LossPeriod], number: int) -> int | None:
    reason = periods[number].reason
    places = range(number + 1, len(periods))
    return next((place for place in places if periods[place].reason == reason), None)


def _oldest_pair(periods: Sequence[LossPeriod]) -> tuple[int, int]:
    """Return the places of the oldest two periods of one reason, of which there are few."""
    for number in range(len(periods)):
        later = _next_of_reason(periods, number)
        if later is not None:
            return number, later
    raise AssertionError(periods)


def _bounded_rows(rows: list[LostRows]) -> tuple[LostRows, ...]:
    while len(rows) > MOST_LOSSES:
        first, second = next(
            (number, later)
            for number, each in enumerate(rows)
            for later in range(number + 1, len(rows))
            if rows[later].reason == each.reason
        )
        rows[first] = rows[first].joined(rows.pop(second))
    return tuple(rows)
