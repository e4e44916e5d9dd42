"""The limits of streams: up to which hash the rows of a time are whole in the log.

They are stored before the first row is removed, and a reader gets them with each lease. So a row
that is missing is always above a limit that its reader knows when it answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.log.os_errors import plain_errors
from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD
from gscope.queries.run_folder.layout import LIMITS_FILE
from gscope.queries.run_folder.whole_file import replace_file
from gscope.queries.streams.limits_file import limits_text, read_limits
from gscope.queries.streams.thresholds import ThresholdSchedule

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gscope.queries.streams.leases import AnsweredTimes

_NONE = ThresholdSchedule.constant(FULL_THRESHOLD)


class StreamLimits:
    """The limits of the streams of a log in ``folder``; for callers that hold the log's lock.

    Attributes:
        of_stream: the limits of each stream that has some.
        answered: the times that readers have answered, by stream.

    Raises:
        StreamError: the stored limits are unreadable or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LIMITS_FILE
        self.of_stream = read_limits(self._path)
        self.answered: dict[str, AnsweredTimes] = {}

    @property
    def least(self) -> int:
        """The least threshold that any time of any stream has."""
        steps = (step for limits in self.of_stream.values() for step in limits.steps)
        return min((step.threshold for step in steps), default=FULL_THRESHOLD)

    def of(self, stream: str) -> ThresholdSchedule:
        """Return the limits of a stream."""
        return self.of_stream.get(stream, _NONE)

    def on_answered(self, stream: str, times: AnsweredTimes) -> None:
        """Take note of the times that a reader has answered; they never fall."""
        known = self.answered.get(stream)
        self.answered[stream] = times if known is None else times.after(known)

    def lower(self, streams: Iterable[str], threshold: int, from_ns: int, until_ns: int) -> bool:
        """Lower the limits of streams for a range of times, and store them.

        Returns:
            False, and nothing is changed, if the limits of one would have too many steps.

        Raises:
            StreamError: they cannot be stored; nothing is changed.
        """
        lowered = dict(self.of_stream)
        for stream in streams:
            limits = self.of(stream)
            if (answered := self.answered.get(stream)) is not None:
                limits = limits.forgotten_before(answered.by_all_ns)
            made = limits.limited(threshold, from_ns, until_ns)
            if made is None:
                return False
            lowered[stream] = made
        with plain_errors("write", self._path):
            replace_file(self._path, limits_text(lowered))
        self.of_stream = lowered
        return True
