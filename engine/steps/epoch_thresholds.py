"""The thresholds of a node's epochs, from the schedules of the streams below it (control plane).

A heartbeat's schedule is over packet times. An epoch of a node covers a range of times at each of
its sides; its threshold is the least of all sources over that range, so that both sides of a join
are cut at the same hash. Where a source is another node, the thresholds of its epochs are placed in
time again. The schedule of a stream is final below its promised bound, and a node answers an epoch
when all its streams have passed it: the threshold of an answered epoch never changes.

A log that is nearly full removes rows above a lower threshold, also below a promised bound, but
only of times that no node has answered: the job states these with each lease, and the reply has the
limits that the log has set (``capture/log/thinning/``).
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gscope.engine.watermarks.bounds import ENDED, NOTHING
from gscope.engine.watermarks.trim import GroupTrim, ThresholdRange, Trim
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.plan.sampling.epoch_rates import with_epoch_rates
from gscope.queries.plan.sampling.epoch_times import epoch_at, epoch_begin
from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD, rate_of
from gscope.queries.plan.sampling.side_epochs import SAME_EPOCHS, WindowEpochs
from gscope.queries.streams.leases import AnsweredTimes
from gscope.queries.streams.thresholds import ThresholdSchedule, ThresholdStep, schedule_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gscope.engine.operators.base import Work
    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import HftaNode
    from gscope.queries.plan.sampling.epoch_rates import RateReader
    from gscope.queries.plan.sampling.keyed_hash import HashKey
    from gscope.queries.plan.sampling.long_groups import LongGroups
    from gscope.queries.plan.sampling.moving_samples import MovingSample
    from gscope.queries.plan.sampling.sampled_rows import ThresholdSource
    from gscope.queries.plan.sampling.side_epochs import SideEpochs
    from gscope.queries.plan.sampling.trimmed_sides import TrimmedSide

_CACHED = 1024
"""The most schedules whose epochs and times are kept."""

Ranges = tuple[ThresholdRange, ...]
"""The thresholds of all epochs, in order and without gaps."""


class SampleThresholds:
    """The schedules of all streams whose thresholds move, and what they mean for each node.

    Args:
        samples: the samples that follow the load.
        key: the constants of the hash by which they were chosen.
    """

    def __init__(self, samples: Iterable[MovingSample], key: HashKey) -> None:
        held = list(samples)
        self._key = key
        self._sides = {query: sides for each in held for query, sides in each.sides.items()}
        self._readers = {query: reader for each in held for query, reader in each.rates.items()}
        self._schedules: dict[str, ThresholdSchedule] = {}
        self._limits: Mapping[str, ThresholdSchedule] = {}
        self._ranges: dict[str, Ranges] = {}

    def on_schedule(self, stream: str, schedule: ThresholdSchedule) -> None:
        """Take the schedule of a heartbeat."""
        known = self._schedules.get(stream)
        made = schedule if known is None else known.followed_by(schedule)
        self._schedules[stream] = made
        if known is None or made.steps != known.steps:
            self._ranges.clear()

    def on_limits(self, limits: Mapping[str, ThresholdSchedule]) -> None:
        """Take the limits that the log has set by stream; they replace those of before."""
        if limits != self._limits:
            self._limits = dict(limits)
            self._ranges.clear()

    def answered(self, watermarks: Mapping[str, Bound]) -> dict[str, AnsweredTimes]:
        """Return up to which times nodes have answered, by stream, given their watermarks."""
        found: dict[str, AnsweredTimes] = {}
        for query in self._sides:
            for stream, by_all_ns, by_any_ns in self._times(query, watermarks[query]):
                known = found.get(stream, AnsweredTimes(by_all_ns, by_any_ns))
                found[stream] = known.including(by_all_ns).including(by_any_ns)
        return found

    def applied(self, work: Work) -> Work:
        """Return ``work`` with what its sides leave out, and with the rates that it reads.

        That is ``work`` itself while nothing is above a threshold and every rate is 1.
        """
        return self._with_rates(self._trimmed(work))

    def ranges(self, query: str) -> Ranges:
        """Return the thresholds of the epochs of a node that answers whole epochs."""
        if query not in self._ranges:
            parts = [part for side in self._sides[query] for part in self._parts(side)]
            ranges = joined_ranges(parts)
            groups = self._sides[query][0].groups
            if groups is not None and groups.is_cumulative:
                ranges = _cumulative(ranges)
            self._ranges[query] = ranges
        return self._ranges[query]

    def snapshot(self, query: str) -> dict[str, Any]:
        """Return the schedules of the streams that a node reads, as plain JSON values."""
        clocks = (clock for side in self._sides.get(query, ()) for clock in side.clocks)
        streams = {stream for source, _ in clocks for stream in source.streams}
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
        self._ranges.clear()

    def _trimmed(self, work: Work) -> Work:
        sides = self._sides.get(work.node.query, ())
        if sides and sides[0].groups is not None:
            work = self._with_group_trim(work, sides[0], sides[0].groups)
        if not any(side.terms for side in sides):
            return work
        own = _within(self.ranges(work.node.query), work.low, work.high)
        if all(each.is_whole for each in own):
            return work
        inputs = tuple(
            replace(taken, trim=self._trim(side, own)) if self._is_cut(side, own) else taken
            for taken, side in zip(work.inputs, sides, strict=True)
        )
        return work if inputs == work.inputs else replace(work, inputs=inputs)

    def _with_group_trim(self, work: Work, side: TrimmedSide, groups: LongGroups) -> Work:
        """Return ``work`` with the groups to leave out."""
        if isinstance(side.reach, WindowEpochs):
            own = self._answered(work, side.reach)
            is_needed = not all(each.is_whole for each in own)
        else:
            # A life that began in doubt may last for any time.
            ranges = self.ranges(work.node.query)
            own = _within(ranges, work.low - 1, work.high)
            is_needed = len(ranges) > 1 or not ranges[0].is_whole
        if not is_needed:
            return work
        return replace(work, group_trim=GroupTrim(own, groups.terms, self._key, groups.closing))

    def _answered(self, work: Work, reach: SideEpochs) -> Ranges:
        """Return the thresholds of the epochs that a step answers."""
        low, high = work.low, work.high
        if isinstance(reach, WindowEpochs):
            low, high = reach.answered(low, high)
        return _within(self.ranges(work.node.query), low, high)

    def _is_cut(self, side: TrimmedSide, own: Ranges) -> bool:
        """Return whether a side may hold rows above the thresholds of some epochs."""
        if not side.terms:
            return False
        held = _within(joined_ranges(self._parts(side)), own[0].first, own[-1].end)
        return any(
            each.threshold < other.ceiling and each.first < other.end and other.first < each.end
            for each in own
            for other in held
        )

    def _with_rates(self, work: Work) -> Work:
        reader = self._readers.get(work.node.query)
        if reader is None:
            return work
        ranges = self.ranges(reader.query)
        if reader.query == work.node.query:
            ranges = self._answered(work, self._sides[reader.query][0].reach)
        node = _with_rates(work.node, reader, ranges)
        return work if node is work.node else replace(work, node=node)

    def _parts(self, side: TrimmedSide) -> list[ThresholdRange]:
        """Return the thresholds that concern the epochs of a side, of each source for itself."""
        parts = (
            part
            for source, clock in side.clocks
            for steps in self._steps(source)
            for part in _over_epochs(steps, clock)
        )
        if side.reach == SAME_EPOCHS:
            return list(parts)
        moved = (_moved(part, side.reach.concerned) for part in parts)
        return [part for part in moved if part.first < part.end]

    def _steps(self, source: ThresholdSource) -> list[tuple[ThresholdStep, ...]]:
        """Return the thresholds of a source over packet time, of each stream for itself."""
        if not source.query:
            return [self._of(stream).steps for stream in source.streams]
        placed = [(side, clock) for side in self._sides[source.query] for clock in side.placed]
        side, clock = placed[source.place]
        # The node has left out all rows above the thresholds of its epochs.
        ranges = tuple(replace(each, ceiling=each.threshold) for each in self.ranges(source.query))
        if side.reach != SAME_EPOCHS:
            ranges = joined_ranges([_moved(each, side.reach.held) for each in ranges])
        return [_over_times(ranges, clock)]

    def _times(self, query: str, watermark: Bound) -> Iterator[tuple[str, int, int]]:
        """Yield, for each stream below a node, the first time that it needs and the end of others.

        Of a shifted join, a reader needs times of one side that are earlier than those of the
        other.
        """
        for side in self._sides[query]:
            for source, clock in side.clocks:
                time_ns = _time_of(clock, watermark)
                for stream in source.streams:
                    yield stream, time_ns, time_ns
                if source.query:
                    placed = [each for one in self._sides[source.query] for each in one.placed]
                    below = _epoch_of(placed[source.place], time_ns)
                    for stream, needed_ns, end_ns in self._times(source.query, below):
                        yield stream, needed_ns, max(end_ns, time_ns)

    def _of(self, stream: str) -> ThresholdSchedule:
        known = self._schedules.get(stream) or ThresholdSchedule.constant(FULL_THRESHOLD)
        limits = self._limits.get(stream)
        return known if limits is None else known.below(limits)

    def _trim(self, side: TrimmedSide, ranges: Ranges) -> Trim:
        return Trim(ranges, side.epoch, side.terms, self._key, side.is_logged)


def _time_of(clock: Expression, watermark: Bound) -> int:
    """Return the first time of the epochs that a node has not answered."""
    if watermark == NOTHING:
        return MIN_TIME_NS
    found = None if watermark == ENDED else _begin(clock, int(watermark))
    return MAX_TIME_NS if found is None else found


def _epoch_of(clock: Expression, time_ns: int) -> Bound:
    """Return the epoch of a time that ``_time_of`` has returned."""
    if time_ns in (MIN_TIME_NS, MAX_TIME_NS):
        return NOTHING if time_ns == MIN_TIME_NS else ENDED
    return epoch_at(clock, time_ns)


def joined_ranges(parts: Sequence[ThresholdRange]) -> Ranges:
    """Return ranges that overlap as ranges that do not.

    Each has the least threshold of its parts.
    """
    borders = sorted({border for part in parts for border in (part.first, part.end)})
    waiting = sorted(parts, key=lambda part: part.first, reverse=True)
    thresholds: list[tuple[int, Bound]] = []
    ceilings: list[tuple[int, Bound]] = []
    ranges: list[ThresholdRange] = []
    for first, end in itertools.pairwise(borders):
        while waiting and waiting[-1].first <= first:
            part = waiting.pop()
            heapq.heappush(thresholds, (part.threshold, part.end))
            heapq.heappush(ceilings, (-part.ceiling, part.end))
        for heap in (thresholds, ceilings):
            while heap[0][1] <= first:
                heapq.heappop(heap)
        made = ThresholdRange(first, end, thresholds[0][0], -ceilings[0][0])
        last = ranges[-1] if ranges else made
        if ranges and (last.threshold, last.ceiling) == (made.threshold, made.ceiling):
            ranges[-1] = replace(last, end=end)
        else:
            ranges.append(made)
    return tuple(ranges)


def _moved(
    part: ThresholdRange, to: Callable[[Bound, Bound], tuple[Bound, Bound]]
) -> ThresholdRange:
    """Return the same threshold for other epochs."""
    first, end = to(part.first, part.end)
    return ThresholdRange(first, end, part.threshold, part.ceiling)


def _cumulative(ranges: Ranges) -> Ranges:
    """Return the same epochs, each with the least threshold up to it."""
    thresholds = itertools.accumulate((each.threshold for each in ranges), min)
    return tuple(
        replace(each, threshold=threshold)
        for each, threshold in zip(ranges, thresholds, strict=True)
    )


def _within(ranges: Ranges, low: Bound, high: Bound) -> Ranges:
    return tuple(each for each in ranges if each.first < high and low < each.end)


def _with_rates(node: HftaNode, reader: RateReader, ranges: Ranges) -> HftaNode:
    """Return a node with the rates of some epochs; itself if all of them are 1."""
    if all(each.threshold == FULL_THRESHOLD for each in ranges):
        return node
    rates: list[tuple[int, float]] = []
    for each, later in itertools.pairwise(ranges):
        if each.threshold != later.threshold:
            rates.append((int(each.end), rate_of(each.threshold)))
    return with_epoch_rates(node, reader, rates, rate_of(ranges[-1].threshold))


@lru_cache(_CACHED)
def _over_epochs(steps: tuple[ThresholdStep, ...], clock: Expression) -> list[ThresholdRange]:
    """Return steps in packet time as ranges of epochs; neighbours share the epoch between them."""
    begins: list[Bound] = [NOTHING]
    ends: list[Bound] = []
    for step in steps[1:]:
        begins.append(epoch_at(clock, step.from_ns))
        ends.append(epoch_at(clock, step.from_ns - 1) + 1)
    ends.append(ENDED)
    return [
        ThresholdRange(first, end, step.threshold, step.ceiling)
        for first, end, step in zip(begins, ends, steps, strict=True)
    ]


@lru_cache(_CACHED)
def _over_times(ranges: Ranges, clock: Expression) -> tuple[ThresholdStep, ...]:
    """Return the thresholds of a node's epochs as steps in packet time."""
    steps: list[ThresholdStep] = []
    for each in ranges:
        from_ns = MIN_TIME_NS if each.first == NOTHING else _begin(clock, int(each.first))
        if from_ns is None:
            break
        while steps and steps[-1].from_ns >= from_ns:
            # No packet has a time in the epochs of that step.
            steps.pop()
        steps.append(ThresholdStep(from_ns, each.threshold, each.ceiling))
    return tuple(steps)


def _begin(clock: Expression, epoch: int) -> int | None:
    """Return the first time of an epoch or a later one; None if there is none before 2116."""
    found = epoch_begin(clock, epoch)
    return MIN_TIME_NS if found == 0 else found
