"""The controllers of all components of a capture, fed by the threads of its interfaces.

Every interface with packets of a component reports how loaded it is. The rate of a component
follows the worst of its own interfaces, and all of them take it over: it would not help an
overloaded interface to leave out packets of others. Any thread may call at any time; nothing waits.
"""

from __future__ import annotations

import threading
from dataclasses import field
from functools import partial
from operator import sub
from typing import TYPE_CHECKING

from gscope.capture.shedding.controller import LoadReason, LoadSignals, RateState, next_rate
from gscope.capture.shedding.moving_thresholds import begin_moving
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD, rate_of, threshold_of
from gscope.queries.plan.unbounded_search import first_reached
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gscope.capture.shedding.moving_thresholds import MovingThresholds
    from gscope.queries.expressions.expressions import Column, Expression, PacketField
    from gscope.queries.plan.sampling.moving_samples import MovingSample
    from gscope.queries.streams.thresholds import ThresholdSchedule

INTERVAL_NS = 20_000_000
"""Least time between two reports of an interface."""

BUSY_NS = 500_000_000
"""Least time over which the share of busy time is taken: blocks of packets arrive in bursts."""

_NS_PER_SECOND = 1_000_000_000
_MOST_ROUNDS = 8
"""Rounds in which a common border of different epochs is looked for; any border is sound."""


@dataclass(frozen=True, slots=True)
class InterfaceLoad:
    """How loaded one interface is.

    Attributes:
        occupancy: part of its fullest ring that is in use.
        dropped_packets: packets that the kernel dropped since the capture began.
        busy_ns: time for which each of its threads has been busy, in nanoseconds, from any moment
            on.
    """

    occupancy: float
    dropped_packets: int
    busy_ns: tuple[int, ...]


@dataclass(slots=True)
class _Reported:
    """The last report of an interface.

    Attributes:
        load: how loaded it was.
        at_ns: when it reported; None if it never did, or has ended.
        busy: part of the time that its busiest thread was busy, some time before.
        busy_since: when the time over which this is taken began, and the load's ``busy_ns`` then.
    """

    load: InterfaceLoad = InterfaceLoad(0.0, 0, ())
    at_ns: int | None = None
    busy: float = 0.0
    busy_since: tuple[int, tuple[int, ...]] | None = None

    def update(self, load: InterfaceLoad, now_ns: int) -> None:
        """Replace the load. How busy the threads are is known after ``BUSY_NS``."""
        self.load, self.at_ns = load, now_ns
        since_ns, busy_ns = self.busy_since or (now_ns, load.busy_ns)
        if now_ns - since_ns >= BUSY_NS:
            longest_ns = max(map(sub, load.busy_ns, busy_ns), default=0)
            self.busy = min(1.0, longest_ns / (now_ns - since_ns))
            since_ns, busy_ns = now_ns, load.busy_ns
        self.busy_since = since_ns, busy_ns


@dataclass(slots=True)
class LoadControl:
    """The rates of a capture's components.

    Args:
        samples: the components.
        min_rate: the least rate of any of them.
        log_fill: returns the part of the log's budget that is in use.
        earlier: by stream, the schedules that an earlier daemon of the run left.
        log_rate: returns the least rate to which the log was thinned.
    """

    samples: Sequence[MovingSample]
    min_rate: float
    log_fill: Callable[[], float] = lambda: 0.0
    earlier: Mapping[str, ThresholdSchedule] = field(default_factory=dict)
    log_rate: Callable[[], float] = lambda: 1.0
    states: list[RateState] = field(init=False)
    _least_rate: float = field(init=False)
    _interfaces: list[set[str]] = field(init=False)
    _reports: dict[str, _Reported] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        steps = (step for schedule in self.earlier.values() for step in schedule.steps)
        self._least_rate = rate_of(min((s.threshold for s in steps), default=FULL_THRESHOLD))
        self.states = [RateState(rate=self._earlier_rate(sample)) for sample in self.samples]
        self._interfaces = [set() for _ in self.samples]

    @property
    def least_rate(self) -> float:
        """The least rate of any component so far."""
        return min(self._least_rate, self.log_rate())

    def begin(
        self,
        interface: str,
        streams: Mapping[str, str],
        set_threshold: Callable[[str, int], None],
    ) -> MovingThresholds | None:
        """Return the thresholds of an interface or lane, as they are when it begins.

        None if no LFTA of the interface follows the load. Called before any interface reports.

        Args:
            interface: name of the interface.
            streams: for each LFTA of the interface, by name, the stream that it writes.
            set_threshold: sets the threshold of an LFTA.
        """
        components = [[n for n in sample.lftas if n in streams] for sample in self.samples]
        for lftas, interfaces in zip(components, self._interfaces, strict=True):
            if lftas:
                interfaces.add(interface)
        if not any(components):
            return None
        earlier = {n: self.earlier[s] for n, s in streams.items() if s in self.earlier}
        return begin_moving(components, earlier, FULL_THRESHOLD, set_threshold)

    def borders(self) -> list[Callable[[int], int]]:
        """Return, for each component, a function that finds when its next epoch begins."""
        return [partial(next_border, sample.clocks) for sample in self.samples]

    def is_due(self, interface: str, now_ns: int) -> bool:
        """Return whether an interface should report again."""
        reported = self._reports.get(interface)
        return reported is None or reported.at_ns is None or now_ns - reported.at_ns >= INTERVAL_NS

    def report(self, interface: str, load: InterfaceLoad, now_ns: int, time_ns: int) -> None:
        """Take over the load of an interface, and change the rates of its components by it.

        Args:
            interface: its name.
            load: how loaded it is.
            now_ns: the time, by a clock that is never stepped.
            time_ns: the time on which epochs are based.
        """
        with self._lock:
            self._reports.setdefault(interface, _Reported()).update(load, now_ns)
            log_fill = self.log_fill()
            self.states = [
                next_rate(
                    state,
                    self._signals(interfaces, interface, log_fill),
                    now_ns,
                    _epoch(sample, time_ns),
                    max(self.min_rate, sample.min_rate),
                )
                if interface in interfaces
                else state
                for state, sample, interfaces in zip(
                    self.states, self.samples, self._interfaces, strict=True
                )
            ]
            self._least_rate = min([self._least_rate, *(state.rate for state in self.states)])

    def forget(self, interface: str) -> None:
        """Take note that an interface has ended: from now on it is not loaded."""
        with self._lock:
            if interface in self._reports:
                dropped_packets = self._reports[interface].load.dropped_packets
                self._reports[interface] = _Reported(InterfaceLoad(0.0, dropped_packets, ()))

    def thresholds(self) -> list[int]:
        """Return the threshold of each component."""
        return [threshold_of(state.rate) for state in self.states]

    def lowest(self) -> tuple[float, LoadReason]:
        """Return the least rate of all components, and why it fell; 1 without components."""
        state = min(self.states, key=lambda each: each.rate, default=RateState())
        return state.rate, state.reason

    def _earlier_rate(self, sample: MovingSample) -> float:
        """Return the rate at which an earlier daemon left a component; 1 if there was none."""
        left = (
            schedule.steps[-1].threshold
            for stream, schedule in self.earlier.items()
            if stream.partition("@")[0] in sample.lftas
        )
        return rate_of(min(left, default=FULL_THRESHOLD))

    def _signals(self, interfaces: set[str], reporting: str, log_fill: float) -> LoadSignals:
        """Return the worst signals of some interfaces, of which one reports just now."""
        reports = [self._reports[name] for name in interfaces if name in self._reports]
        occupancy = max(each.load.occupancy for each in reports)
        return LoadSignals(
            occupancy,
            self._reports[reporting].load.occupancy == occupancy,
            sum(each.load.dropped_packets for each in reports),
            max(each.busy for each in reports),
            log_fill,
        )


def next_border(clocks: Sequence[Expression], after_ns: int) -> int:
    """Return a time later than ``after_ns`` at which epochs of all clocks begin, or of some.

    Without clocks there are no epochs, and any later time will do.
    """
    time_ns = after_ns + 1
    for _ in range(_MOST_ROUNDS):
        borders = [_begin(clock, time_ns) for clock in clocks]
        latest = max(borders, default=time_ns)
        if latest == time_ns:
            break
        time_ns = latest
    return time_ns


def _epoch(sample: MovingSample, time_ns: int) -> int:
    """Return the number of an epoch: of the first of its nodes, or of a second without epochs."""
    clocks = sample.clocks
    return _value(clocks[0], time_ns) if clocks else time_ns // _NS_PER_SECOND


def _begin(clock: Expression, time_ns: int) -> int:
    """Return the first time from ``time_ns`` on at which an epoch begins; itself if none does."""
    before = _value(clock, time_ns - 1)
    found = first_reached(lambda at: _value(clock, at) > before, time_ns)
    return time_ns if found is None else found


def _value(clock: Expression, time_ns: int) -> int:
    def leaf(part: PacketField | Column) -> int:
        return time_ns // _NS_PER_SECOND if part.name == "time" else time_ns

    value = evaluate(clock, leaf)
    return value if isinstance(value, int) else 0
