"""The thresholds of one interface that follow the load, and their schedule over packet times.

The controller chooses one threshold for each component; each interface takes it over by itself::

    falls     at once: the next packet is tested by it
    rises     for packets of the next epoch: none of them has been seen yet

Where an interface takes over a rise a little earlier than the epoch begins, rows of the epoch
before it may be kept above its threshold. The schedule says so, and the job leaves them out.
Interfaces and lanes need no agreement: what counts is the least threshold of all.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from gscope.queries.streams.thresholds import ThresholdSchedule
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(slots=True)
class _Component:
    """One component on this interface.

    Attributes:
        lftas: its LFTAs that sample.
        threshold: the threshold of current packets.
        schedule: what heartbeats report.
        rising: the threshold to take over, and the packet time from which it holds; None for none.
    """

    lftas: tuple[str, ...]
    threshold: int
    schedule: ThresholdSchedule
    rising: tuple[int, int] | None = None


@dataclass(slots=True)
class MovingThresholds:
    """The thresholds of one interface; for use by the thread that sends its heartbeats.

    Args:
        set_threshold: sets the threshold of an LFTA for all following packets, on all lanes.
    """

    set_threshold: Callable[[str, int], None]
    _components: list[_Component] = field(default_factory=list)
    _of_lfta: dict[str, _Component] = field(default_factory=dict)

    def add(self, lftas: Sequence[str], schedule: ThresholdSchedule) -> int:
        """Add a component; return its number.

        Its threshold is that of the end of ``schedule``: of a run that begins or of one that an
        earlier daemon left.
        """
        threshold = schedule.steps[-1].threshold
        component = _Component(tuple(lftas), threshold, schedule)
        self._components.append(component)
        self._of_lfta |= dict.fromkeys(lftas, component)
        self._take_over(component, threshold)
        return len(self._components) - 1

    def has(self, component: int) -> bool:
        """Return whether an LFTA of the component samples on this interface."""
        return bool(self._components[component].lftas)

    def is_rising(self, component: int) -> bool:
        """Return whether a rise of the component waits for packets of the next epoch."""
        return self._components[component].rising is not None

    def threshold(self, component: int) -> int:
        """Return the threshold of current packets, or of the next epoch if it will rise."""
        held = self._components[component]
        return held.threshold if held.rising is None else held.rising[0]

    def changes(self, thresholds: Sequence[int]) -> dict[str, int]:
        """Return the LFTAs whose threshold would change, with the one that they would have.

        Args:
            thresholds: the threshold of each component.
        """
        return {
            lfta: threshold
            for number, (held, threshold) in enumerate(
                zip(self._components, thresholds, strict=True)
            )
            if threshold < self.threshold(number)
            or (threshold > held.threshold and held.rising is None)
            for lfta in held.lftas
        }

    def resume(self, bound_ns: int, clear_ns: int) -> None:
        """Continue what an earlier daemon left, which may have been about to change.

        Args:
            bound_ns: no packet before this will be accepted.
            clear_ns: no packet at or after this was accepted yet.
        """
        for held in self._components:
            held.schedule = held.schedule.lowered(held.threshold, bound_ns, clear_ns)

    def lower(
        self, component: int, threshold: int, bound_ns: int, latest_ns: Callable[[], int]
    ) -> None:
        """Let a threshold fall at once.

        Args:
            component: number of the component.
            threshold: at most ``self.threshold(component)``.
            bound_ns: no packet before this will be accepted.
            latest_ns: returns the time of the latest packet so far, or a later time; called when
                no packet is tested by the old threshold any more.
        """
        held = self._components[component]
        assert threshold <= self.threshold(component), (threshold, held)
        self.reach(bound_ns)
        if held.rising is not None and threshold > held.threshold:
            # It rises by less than was planned.
            from_ns = held.rising[1]
            held.rising = threshold, from_ns
            held.schedule = held.schedule.raised(threshold, bound_ns, from_ns)
            return
        held.rising = None
        self._take_over(held, threshold)
        held.schedule = held.schedule.lowered(threshold, bound_ns, latest_ns() + 1)

    def let_rise(self, component: int, threshold: int, bound_ns: int, from_ns: int) -> None:
        """Let a threshold rise for packets from ``from_ns`` on, later than all so far."""
        held = self._components[component]
        assert threshold >= held.threshold, (threshold, held)
        if held.rising is None:
            held.schedule = held.schedule.raised(threshold, bound_ns, from_ns)
            held.rising = threshold, from_ns

    def reach(self, time_ns: int) -> None:
        """Take over the rises for packets up to ``time_ns``, before these are tested."""
        for held in self._components:
            if held.rising is not None and held.rising[1] <= time_ns:
                threshold, _ = held.rising
                held.rising = None
                self._take_over(held, threshold)

    @property
    def next_rise_ns(self) -> int | None:
        """The least time for which ``reach`` would change anything; None for none."""
        return min((held.rising[1] for held in self._components if held.rising), default=None)

    def schedule(self, lfta: str, bound_ns: int) -> ThresholdSchedule | None:
        """Return the schedule of an LFTA for a heartbeat; None if its threshold never moves."""
        held = self._of_lfta.get(lfta)
        if held is None:
            return None
        self.reach(bound_ns)
        held.schedule = held.schedule.promised(bound_ns)
        return held.schedule

    def _take_over(self, held: _Component, threshold: int) -> None:
        held.threshold = threshold
        for lfta in held.lftas:
            self.set_threshold(lfta, threshold)


def begin_moving(
    components: Sequence[Sequence[str]],
    schedules: Mapping[str, ThresholdSchedule],
    threshold: int,
    set_threshold: Callable[[str, int], None],
) -> MovingThresholds:
    """Return the thresholds of an interface.

    Args:
        components: for each component its LFTAs on the interface that sample.
        schedules: for each LFTA the schedule that an earlier daemon left, where there is one.
        threshold: that of components without one.
        set_threshold: as of ``MovingThresholds``.
    """
    moving = MovingThresholds(set_threshold)
    for lftas in components:
        known = next((schedules[lfta] for lfta in lftas if lfta in schedules), None)
        moving.add(lftas, known or ThresholdSchedule.constant(threshold))
    return moving
