"""The controller: which rate a component of LFTAs is sampled at, given how loaded the capture is.

A pure function of signals: the same signals at the same times give the same rates. Nothing here
reads a clock or a ring.

::

    overloaded    the kernel drops packets, or a ring is more than half full, and after 50 ms it
                  has not begun to empty: the rate is halved, again every 100 ms until it empties,
                  every 50 ms while packets are dropped
    job lags      the stream log is more than half full: the rate is halved, once an epoch, because
                  it takes an epoch until the log shows an effect
    calm          neither, for three epochs, and time to spare: the rate rises by a quarter as each
                  epoch begins

Where epochs are shorter than half a second, a lagging job and calm change the rate only once in
that time: an effect takes time to show, however short the epochs are.

The rate never leaves [min_rate, 1].
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from gscope.records import dataclass

MOST_OCCUPANCY = 0.5
"""Part of a ring that may be in use; more is an overload."""

CHECK_INTERVAL_NS = 50_000_000
"""Time after which a ring that is too full, or has overflowed, is looked at again.

This need not be an overload: a thread that stood still for a moment catches up by itself, and a
lower rate would not have helped. It takes some blocks of the ring to see that it does."""

MOST_LOG_FILL = 0.5
"""Part of the log's budget that may be in use before the job counts as too slow."""

MOST_BUSY = 0.75
"""Part of the time that a thread may be busy while a rate still rises: a rise by a quarter leaves
it below 0.94."""

FALL = 0.5
RISE = 1.25
FALL_INTERVAL_NS = 100_000_000
"""Time between two falls."""

DROPS_FALL_INTERVAL_NS = CHECK_INTERVAL_NS
"""Time between two falls while the kernel drops packets, each of which spoils an epoch's rows."""

SLOW_INTERVAL_NS = 500_000_000
"""Least time between two rises, between a fall and a rise, and between two falls due to the log.

Epochs of a second, which may be seen a little early or late, are longer."""

CALM_EPOCHS = 3
"""Whole epochs without an overload before a rate rises."""


class LoadReason(StrEnum):
    """Why a rate fell last."""

    NONE = "none"
    RING = "ring"
    DROPS = "drops"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class LoadSignals:
    """How loaded a capture is at a moment; the worst of its interfaces and lanes.

    Attributes:
        occupancy: part of the fullest ring that is in use, from 0 to 1.
        is_measured: whether that ring was measured for these signals, not for earlier ones.
        dropped_packets: packets that the kernel dropped since the capture began.
        busy: part of the last half second or more that the busiest thread was busy.
        log_fill: part of the log's budget that is in use.
    """

    occupancy: float = 0.0
    is_measured: bool = True
    dropped_packets: int = 0
    busy: float = 0.0
    log_fill: float = 0.0


@dataclass(frozen=True, slots=True)
class RateState:
    """The rate of a component, and what its next change depends on.

    Attributes:
        rate: share of groups that is kept.
        reason: why it fell last; NONE once it is 1 again.
        fell_ns: when it fell last; None if it never did.
        changed_ns: when it fell or rose last; None if it never did.
        checked: when the ring was last looked at since it is too full or overflows, and how full it
            was; None if neither.
        signals: the last signals.
        epoch: number of the last epoch seen; None before the first.
        is_calm: whether nothing but calm was seen in that epoch.
        calm_epochs: whole epochs of calm before it.
    """

    rate: float = 1.0
    reason: LoadReason = LoadReason.NONE
    fell_ns: int | None = None
    changed_ns: int | None = None
    checked: tuple[int, float] | None = None
    signals: LoadSignals = LoadSignals()
    epoch: int | None = None
    is_calm: bool = False
    calm_epochs: int = 0


def next_rate(
    state: RateState, signals: LoadSignals, now_ns: int, epoch: int, min_rate: float
) -> RateState:
    """Return the state after new signals.

    Args:
        state: the state after the last signals.
        signals: the signals now.
        now_ns: the time now, by a clock that is never stepped.
        epoch: number of the epoch of current packets; it rises.
        min_rate: the least rate.
    """
    begins = state.epoch is not None and epoch > state.epoch
    reason = _overload(state, signals)
    is_calm = reason is LoadReason.NONE and signals.busy <= MOST_BUSY
    calm_epochs = state.calm_epochs + 1 if state.is_calm else 0
    seen = replace(
        state,
        signals=signals,
        epoch=epoch if begins or state.epoch is None else state.epoch,
        # An epoch that was not seen from its beginning does not count.
        is_calm=is_calm and (begins or state.is_calm),
        calm_epochs=(calm_epochs if begins else state.calm_epochs) if is_calm else 0,
        checked=_checked(state, signals, now_ns, reason),
    )
    if reason is LoadReason.NONE:
        if not begins or seen.calm_epochs < CALM_EPOCHS or seen.rate >= 1:
            return seen
        if not _has_passed(SLOW_INTERVAL_NS, state.changed_ns, now_ns):
            return seen
        rate = min(1.0, seen.rate * RISE)
        reason = LoadReason.NONE if rate == 1 else seen.reason
        return replace(seen, rate=rate, reason=reason, changed_ns=now_ns)
    if reason is LoadReason.LOG:
        is_due = begins and _has_passed(SLOW_INTERVAL_NS, state.fell_ns, now_ns)
    else:
        is_due = _is_ring_due(state, signals, now_ns)
    if not is_due:
        return seen
    rate = max(min_rate, state.rate * FALL)
    # At the least rate there is nothing left to do.
    rate = min(rate, state.rate)
    return replace(seen, rate=rate, reason=reason, fell_ns=now_ns, changed_ns=now_ns)


def _overload(state: RateState, signals: LoadSignals) -> LoadReason:
    """Return why the signals are an overload; NONE if they are not."""
    if signals.dropped_packets > state.signals.dropped_packets:
        return LoadReason.DROPS
    if signals.occupancy > MOST_OCCUPANCY:
        return LoadReason.RING
    return LoadReason.LOG if signals.log_fill > MOST_LOG_FILL else LoadReason.NONE


def _is_ring_due(state: RateState, signals: LoadSignals, now_ns: int) -> bool:
    """Return whether the rate falls now, for a ring that is too full or has overflowed."""
    is_dropping = signals.dropped_packets > state.signals.dropped_packets
    interval_ns = DROPS_FALL_INTERVAL_NS if is_dropping else FALL_INTERVAL_NS
    if not signals.is_measured or not _has_passed(interval_ns, state.fell_ns, now_ns):
        return False
    if state.checked is None:
        return False
    checked_ns, occupancy = state.checked
    # A ring that empties needs only time.
    return now_ns - checked_ns >= CHECK_INTERVAL_NS and signals.occupancy >= occupancy


def _checked(
    state: RateState, signals: LoadSignals, now_ns: int, reason: LoadReason
) -> tuple[int, float] | None:
    """Return when the ring was looked at, and how full it was, for ``RateState.checked``."""
    if not signals.is_measured:
        return state.checked
    if reason not in (LoadReason.RING, LoadReason.DROPS):
        return None
    if state.checked is None or now_ns - state.checked[0] >= CHECK_INTERVAL_NS:
        return now_ns, signals.occupancy
    return state.checked


def _has_passed(interval_ns: int, since_ns: int | None, now_ns: int) -> bool:
    return since_ns is None or now_ns - since_ns >= interval_ns
