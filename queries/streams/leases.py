"""What a reader of a log and the log exchange when the reader leases batches."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.thresholds import FULL_THRESHOLD, ThresholdStep, schedule_of
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.queries.streams.thresholds import ThresholdSchedule


@dataclass(frozen=True, slots=True)
class AnsweredTimes:
    """Up to which packet times of a stream the epochs of its readers have been answered.

    Attributes:
        by_all_ns: no reader will answer an epoch with times before this.
        by_any_ns: some reader has answered, or is about to answer, epochs with times up to this.
            The thresholds of times before it may not fall any more.
    """

    by_all_ns: int
    by_any_ns: int

    def including(self, time_ns: int) -> AnsweredTimes:
        """Return the times with those of a further reader, which has answered up to ``time_ns``."""
        return AnsweredTimes(min(self.by_all_ns, time_ns), max(self.by_any_ns, time_ns))

    def after(self, earlier: AnsweredTimes) -> AnsweredTimes:
        """Return the times, none of which falls behind what a reader has reported before.

        A job that has crashed answers its last step again.
        """
        return AnsweredTimes(
            max(self.by_all_ns, earlier.by_all_ns), max(self.by_any_ns, earlier.by_any_ns)
        )


@dataclass(frozen=True, slots=True)
class LeaseReply:
    """The log's reply to a lease.

    Attributes:
        gone: the sequence numbers of the batches that were shed already, by stream.
        limits: by stream, the thresholds above which a full log has removed rows.
    """

    gone: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    limits: Mapping[str, ThresholdSchedule] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return it as plain JSON values."""
        return {
            "gone": {stream: list(numbers) for stream, numbers in self.gone.items()},
            "limits": {stream: limits_to_json(each) for stream, each in self.limits.items()},
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Mapping[str, list[int]]]) -> LeaseReply:
        """Return what ``to_json`` has returned."""
        limits: Mapping[str, object] = fields["limits"]
        return cls(
            {stream: tuple(numbers) for stream, numbers in fields["gone"].items()},
            {stream: limits_from_json(steps) for stream, steps in limits.items()},
        )


def limits_to_json(limits: ThresholdSchedule) -> list[list[int]]:
    """Return the limits of a stream as plain JSON values."""
    return [[step.from_ns, step.threshold] for step in limits.steps]


def limits_from_json(value: object) -> ThresholdSchedule:
    """Return the limits of a stream from JSON values.

    Raises:
        ValueError: they are none.
    """
    if not isinstance(value, list) or any(
        not isinstance(step, list) or [type(number) for number in step] != [int, int]
        for step in value
    ):
        problem = "invalid limits of a stream"
        raise ValueError(problem)
    steps = [ThresholdStep(from_ns, threshold, FULL_THRESHOLD) for from_ns, threshold in value]
    return schedule_of(MIN_TIME_NS, steps)


def answered_from_json(value: object) -> dict[str, AnsweredTimes]:
    """Return the answered times of streams from JSON values, a pair for each.

    Raises:
        ValueError: they are none.
    """
    made: dict[str, AnsweredTimes] = {}
    for stream, pair in value.items() if isinstance(value, dict) else [("", value)]:
        match pair:
            case [int(by_all), int(by_any)] if MIN_TIME_NS <= by_all <= by_any <= MAX_TIME_NS:
                made[str(stream)] = AnsweredTimes(by_all, by_any)
            case _:
                problem = f"invalid answered times: expected two for each stream, got {pair!r:.100}"
                raise ValueError(problem)
    return made
