"""The thresholds of a node's epochs, from the schedules of the streams below it (control plane).

A heartbeat's schedule is over packet times. An epoch of a node covers a range of times at each of
its sides; its threshold is the least of all streams over that range, so that both sides of a join
are cut at the same hash. The schedule of a stream is final below its promised bound, and a node
answers an epoch when all its streams have passed it: the threshold of an answered epoch never
changes.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gscope.engine.watermarks.bounds import ENDED, NOTHING
from gscope.engine.watermarks.trim import ThresholdRange, Trim
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.streams.thresholds import (
    FULL_THRESHOLD,
    ThresholdSchedule,
    ThresholdStep,
    schedule_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gscope.engine.operators.base import Work
    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.expressions.expressions import Expression, PacketField
    from gscope.queries.plan.moving_samples import MovingSample, TrimmedSide
    from gscope.queries.plan.sampling_hash import HashKey

_NS_PER_SECOND = 1_000_000_000


class SampleThresholds:
    """The schedules of all streams whose thresholds move, and what they mean for each node.

    Args:
        samples: the samples that follow the load.
        key: the constants of the hash by which they were chosen.
    """

    def __init__(self, samples: Iterable[MovingSample], key: HashKey) -> None:
        self._key = key
        self._sides = {query: sides for each in samples for query, sides in each.sides.items()}
        self._schedules: dict[str, ThresholdSchedule] = {}

    def on_schedule(self, stream: str, schedule: ThresholdSchedule) -> None:
        """Take the schedule of a heartbeat."""
        known = self._schedules.get(stream)
        self._schedules[stream] = schedule if known is None else known.followed_by(schedule)

    def trimmed(self, work: Work) -> Work:
        """Return ``work`` with what its sides leave out; ``work`` itself if that is nothing."""
        sides = self._sides.get(work.node.query, ())
        if not any(sides):
            return work
        ranges = self.ranges(work.node.query)
        if all(r.is_whole or r.end <= work.low or work.high <= r.first for r in ranges):
            return work
        inputs = tuple(
            taken if side is None else replace(taken, trim=self._trim(side, ranges))
            for taken, side in zip(work.inputs, sides, strict=True)
        )
        return replace(work, inputs=inputs)

    def ranges(self, query: str) -> tuple[ThresholdRange, ...]:
        """Return the thresholds of the epochs of a node."""
        return joined_ranges(
            [
                part
                for side in self._sides[query]
                if side is not None
                for stream in side.streams
                for part in _over_epochs(self._of(stream), side.clock)
            ]
        )

    def snapshot(self, query: str) -> dict[str, Any]:
        """Return the schedules of the streams of a node, as plain JSON values."""
        streams = {s for side in self._sides.get(query, ()) if side for s in side.streams}
        return {
            stream: [
                schedule.bound_ns,
                [[step.from_ns, step.threshold, step.ceiling] for step in schedule.steps],
            ]
            for stream, schedule in self._schedules.items()
            if stream in streams
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        for stream, (bound_ns, steps) in saved.items():
            made = schedule_of(bound_ns, [ThresholdStep(*step) for step in steps])
            self._schedules[stream] = made

    def _of(self, stream: str) -> ThresholdSchedule:
        return self._schedules.get(stream) or ThresholdSchedule.constant(FULL_THRESHOLD)

    def _trim(self, side: TrimmedSide, ranges: tuple[ThresholdRange, ...]) -> Trim:
        return Trim(ranges, side.epoch, side.terms, self._key)


def _over_epochs(schedule: ThresholdSchedule, clock: Expression) -> list[ThresholdRange]:
    """Return the steps of a schedule over epochs; neighbours share the epoch between them."""
    begins: list[Bound] = [NOTHING]
    ends: list[Bound] = []
    for step in schedule.steps[1:]:
        begins.append(_epoch_at(clock, step.from_ns))
        ends.append(_epoch_at(clock, step.from_ns - 1) + 1)
    ends.append(ENDED)
    return [
        ThresholdRange(first, end, step.threshold, step.ceiling)
        for first, end, step in zip(begins, ends, schedule.steps, strict=True)
    ]


def joined_ranges(parts: Sequence[ThresholdRange]) -> tuple[ThresholdRange, ...]:
    """Return ranges that overlap as ranges that do not, each with the least threshold of its parts."""
    borders = sorted({border for part in parts for border in (part.first, part.end)})
    ranges = []
    for first, end in itertools.pairwise(borders):
        over = [part for part in parts if part.first <= first and end <= part.end]
        threshold = min(part.threshold for part in over)
        ceiling = max(part.ceiling for part in over)
        ranges.append(ThresholdRange(first, end, threshold, ceiling))
    return tuple(ranges)


def _epoch_at(clock: Expression, time_ns: int) -> int:
    """Return the epoch of a time."""

    def leaf(part: Any) -> int:
        field: PacketField = part
        return time_ns // _NS_PER_SECOND if field.name == "time" else time_ns

    value = evaluate(clock, leaf)
    assert isinstance(value, int), (clock, value)
    return value
