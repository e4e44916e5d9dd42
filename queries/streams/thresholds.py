"""The schedule of a sample's thresholds, which heartbeats carry from a stream's writer to readers.

A threshold may fall at any moment. What a stream holds of the packets of a moment of *their* time
is therefore known by two numbers: every row whose hash is at most ``threshold`` is there as a
whole, and none is there with a hash above ``ceiling``. Rows between the two may be there in part,
because the threshold fell when some of their packets had been taken already. A reader leaves them
out: the samples of falling thresholds are nested, so the rest is a sample of its own.

::

    packet time   ──────────┬───────────────┬─────────────────►
    threshold          T0   │       T1      │       T1
    ceiling            T0   │       T0      │       T1
                            └ the bound     └ behind the latest packet
                              when T fell     when T fell

Below the bound that a heartbeat promises its schedule is final.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from typing import TYPE_CHECKING

from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FULL_THRESHOLD = (1 << 64) - 1
"""The threshold that keeps every packet."""

MOST_STEPS = 64
"""The most steps of a schedule; the oldest ones are then joined, with the least threshold."""


@dataclass(frozen=True, slots=True)
class ThresholdStep:
    """What a stream holds of packets from a time on, up to the next step.

    Attributes:
        from_ns: the time of the first packet, in nanoseconds since 1970.
        threshold: rows with hashes up to this one are whole.
        ceiling: no row has a greater hash; at least ``threshold``.
    """

    from_ns: int
    threshold: int
    ceiling: int

    def joined(self, other: ThresholdStep) -> ThresholdStep:
        """Return what is known of the packets of both steps; the times are those of this one."""
        threshold = min(self.threshold, other.threshold)
        return ThresholdStep(self.from_ns, threshold, max(self.ceiling, other.ceiling))


@dataclass(frozen=True, slots=True)
class ThresholdSchedule:
    """The thresholds of one stream, over the time of packets.

    Attributes:
        bound_ns: the bound on packet times for which it was made; it is final below this.
        steps: at least one, by time; the first begins at ``MIN_TIME_NS``.
    """

    bound_ns: int
    steps: tuple[ThresholdStep, ...]

    def __post_init__(self) -> None:
        times = [step.from_ns for step in self.steps]
        assert times, "a schedule without steps"
        assert times[0] == MIN_TIME_NS, times
        assert all(a < b for a, b in itertools.pairwise(times)), times
        assert all(step.threshold <= step.ceiling for step in self.steps), self.steps

    @classmethod
    def constant(cls, threshold: int) -> ThresholdSchedule:
        """Return the schedule of a threshold that does not change."""
        return cls(MIN_TIME_NS, (ThresholdStep(MIN_TIME_NS, threshold, threshold),))

    @property
    def is_constant(self) -> bool:
        """Whether no row is to be left out, at any time."""
        return len(self.steps) == 1 and self.steps[0].threshold == self.steps[0].ceiling

    def at(self, time_ns: int) -> ThresholdStep:
        """Return the step of a time."""
        return self.steps[self._number(time_ns)]

    def within(self, first_ns: int, last_ns: int) -> ThresholdStep:
        """Return what is known of packets from ``first_ns`` to ``last_ns``, both included."""
        found = self.steps[self._number(first_ns) : self._number(last_ns) + 1]
        result = found[0]
        for step in found[1:]:
            result = result.joined(step)
        return result

    def greatest(self, first_ns: int, last_ns: int) -> int:
        """Return the greatest threshold of packets from ``first_ns`` to ``last_ns``.

        Both times are included.
        """
        steps = self.steps[self._number(first_ns) : self._number(last_ns) + 1]
        return max(step.threshold for step in steps)

    def lowered(self, threshold: int, bound_ns: int, clear_ns: int) -> ThresholdSchedule:
        """Return the schedule after a fall.

        Args:
            threshold: the threshold from now on; where it was lower it stays so.
            bound_ns: no packet before this will be accepted.
            clear_ns: no packet at or after this was accepted yet.
        """
        clear_ns = max(clear_ns, bound_ns)
        steps = []
        for step in _split(self.steps, (bound_ns, clear_ns)):
            if step.from_ns < bound_ns:
                steps.append(step)
                continue
            low = min(step.threshold, threshold)
            ceiling = low if step.from_ns >= clear_ns else step.ceiling
            steps.append(ThresholdStep(step.from_ns, low, ceiling))
        return _made(self.bound_ns, steps)

    def raised(self, threshold: int, bound_ns: int, from_ns: int) -> ThresholdSchedule:
        """Return the schedule after a rise.

        Args:
            threshold: the threshold from now on.
            bound_ns: no packet before this will be accepted.
            from_ns: the time of packets from which on it counts: none of them was accepted yet.
        """
        assert from_ns >= bound_ns, (from_ns, bound_ns)
        steps = []
        for step in _split(self.steps, (bound_ns, from_ns)):
            if step.from_ns >= from_ns:
                steps.append(ThresholdStep(step.from_ns, threshold, threshold))
            elif step.from_ns >= bound_ns:
                ceiling = max(step.ceiling, threshold)
                steps.append(ThresholdStep(step.from_ns, step.threshold, ceiling))
            else:
                steps.append(step)
        return _made(self.bound_ns, steps)

    def foretelling(self, threshold: int, bound_ns: int) -> ThresholdSchedule:
        """Return what holds before and after a change to ``threshold``.

        The change may come at any moment. A heartbeat says so before the change, so that it is
        known if there is no later heartbeat.

        Args:
            threshold: the threshold that will be taken over.
            bound_ns: no packet before this will be accepted.
        """
        steps = [
            ThresholdStep(
                step.from_ns, min(step.threshold, threshold), max(step.ceiling, threshold)
            )
            if step.from_ns >= bound_ns
            else step
            for step in _split(self.steps, (bound_ns,))
        ]
        return _made(self.bound_ns, steps)

    def limited(self, threshold: int, from_ns: int, until_ns: int) -> ThresholdSchedule | None:
        """Return the schedule once rows above ``threshold`` may be missing in a range of times.

        Ceilings stay, because rows above may still be there.

        Args:
            threshold: the greatest threshold of these times from now on.
            from_ns: the first of them.
            until_ns: the first time after them.

        Returns:
            None if it had too many steps: none of them may be joined, because earlier epochs may
            have been answered.
        """
        steps = [
            ThresholdStep(step.from_ns, min(step.threshold, threshold), step.ceiling)
            if from_ns <= step.from_ns < until_ns
            else step
            for step in _split(self.steps, (from_ns, until_ns))
        ]
        kept = _distinct(steps)
        return None if len(kept) > MOST_STEPS else ThresholdSchedule(self.bound_ns, tuple(kept))

    def forgotten_before(self, time_ns: int) -> ThresholdSchedule:
        """Return the schedule with the threshold that keeps every packet before ``time_ns``."""
        if time_ns <= MIN_TIME_NS:
            return self
        later = (step for step in _split(self.steps, (time_ns,)) if step.from_ns >= time_ns)
        first = ThresholdStep(MIN_TIME_NS, FULL_THRESHOLD, FULL_THRESHOLD)
        return ThresholdSchedule(self.bound_ns, tuple(_distinct([first, *later])))

    def below(self, limits: ThresholdSchedule) -> ThresholdSchedule:
        """Return this schedule with thresholds that are at most those of ``limits``."""
        times = sorted({step.from_ns for each in (self, limits) for step in each.steps})
        steps = []
        for time_ns in times:
            own, threshold = self.at(time_ns), limits.at(time_ns).threshold
            steps.append(ThresholdStep(time_ns, min(own.threshold, threshold), own.ceiling))
        # It is not sent to anyone, so it may have more steps than a message.
        return ThresholdSchedule(self.bound_ns, tuple(_distinct(steps)))

    def promised(self, bound_ns: int) -> ThresholdSchedule:
        """Return the schedule for a heartbeat that promises a bound; it never falls."""
        return ThresholdSchedule(max(bound_ns, self.bound_ns), self.steps)

    def followed_by(self, later: ThresholdSchedule) -> ThresholdSchedule:
        """Return what is known after a later heartbeat: this below its bound, ``later`` above."""
        if self.bound_ns == MIN_TIME_NS:
            return later
        steps = [step for step in self.steps if step.from_ns < self.bound_ns]
        split = _split(later.steps, (self.bound_ns,))
        steps += [step for step in split if step.from_ns >= self.bound_ns]
        return _made(max(self.bound_ns, later.bound_ns), steps)

    def _number(self, time_ns: int) -> int:
        return bisect_right(self.steps, time_ns, key=lambda step: step.from_ns) - 1


def schedule_of(bound_ns: int, steps: Sequence[ThresholdStep]) -> ThresholdSchedule:
    """Return the schedule of steps that another process sent.

    Raises:
        ValueError: no writer of schedules sends such steps.
    """
    times = [step.from_ns for step in steps]
    is_sound = (
        0 < len(steps) <= MOST_STEPS
        and times[0] == MIN_TIME_NS
        and times == sorted(set(times))
        and max(times[-1], bound_ns) <= MAX_TIME_NS
        and bound_ns >= MIN_TIME_NS
        and all(0 <= step.threshold <= step.ceiling <= FULL_THRESHOLD for step in steps)
    )
    if not is_sound:
        problem = "invalid schedule of thresholds"
        raise ValueError(problem)
    return ThresholdSchedule(bound_ns, tuple(steps))


def least(schedules: Sequence[ThresholdSchedule]) -> ThresholdSchedule:
    """Return what is known of the rows of several streams together, at least one.

    A row is whole in all of them up to the least threshold, and in none above the greatest ceiling.
    """
    times = sorted({step.from_ns for each in schedules for step in each.steps})
    steps = []
    for time_ns in times:
        first, *others = (each.at(time_ns) for each in schedules)
        step = ThresholdStep(time_ns, first.threshold, first.ceiling)
        for other in others:
            step = step.joined(other)
        steps.append(step)
    return _made(min(each.bound_ns for each in schedules), steps)


def _split(steps: Iterable[ThresholdStep], times: Sequence[int]) -> Iterator[ThresholdStep]:
    """Yield ``steps``, cut at ``times`` too."""
    known = list(steps)
    begins = {step.from_ns for step in known}
    for number, step in enumerate(known):
        yield step
        end = known[number + 1].from_ns if number + 1 < len(known) else None
        for time_ns in sorted(set(times) - begins):
            if step.from_ns < time_ns and (end is None or time_ns < end):
                yield ThresholdStep(time_ns, step.threshold, step.ceiling)


def _made(bound_ns: int, steps: Iterable[ThresholdStep]) -> ThresholdSchedule:
    """Return a schedule without steps that change nothing, and with at most ``MOST_STEPS``."""
    kept = _distinct(steps)
    while len(kept) > MOST_STEPS:
        kept[:2] = [kept[0].joined(kept[1])]
    return ThresholdSchedule(bound_ns, tuple(kept))


def _distinct(steps: Iterable[ThresholdStep]) -> list[ThresholdStep]:
    """Return steps without those that change nothing."""
    kept: list[ThresholdStep] = []
    for step in steps:
        last = kept[-1] if kept else None
        if last is None or (last.threshold, last.ceiling) != (step.threshold, step.ceiling):
            kept.append(step)
    return kept
