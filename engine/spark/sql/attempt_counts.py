"""Counts of functions that run inside Spark's own operators, which return no result of ours.

The counts travel with the result of each attempt of a task, and one attempt of each task counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.accumulators import AccumulatorParam

from gscope.engine.storage.counts import Counts

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator
    from pyspark.sql import SparkSession

ByAttempt = dict[tuple[int, int], dict[int, Counts]]
"""The counts of each task, by stage and partition, then by attempt."""


class _ByAttemptParam(AccumulatorParam[ByAttempt]):
    """An accumulator that keeps attempts apart: Spark reports every attempt that succeeds."""

    def zero(self, value: ByAttempt) -> ByAttempt:  # noqa: ARG002 - Spark's signature
        """Return no counts."""
        return {}

    def addInPlace(self, value1: ByAttempt, value2: ByAttempt) -> ByAttempt:
        """Return the counts of both."""
        for task, attempts in value2.items():
            known = value1.setdefault(task, {})
            for attempt, counts in attempts.items():
                known[attempt] = known.get(attempt, Counts()) + counts
        return value1


class AttemptCounts:
    """The counts of one session.

    Attributes:
        by_attempt: the accumulator to which tasks add their counts.
    """

    def __init__(self, session: SparkSession) -> None:
        self.by_attempt: Accumulator[ByAttempt] = session.sparkContext.accumulator(
            {}, _ByAttemptParam()
        )
        self._total = Counts()
        self._last_stage = -1

    def total(self) -> Counts:
        """Return the counts so far, with one attempt of each task.

        Call it when no task runs.
        """
        counted, self.by_attempt.value = self.by_attempt.value, {}
        known = self._last_stage
        for (stage, _), attempts in counted.items():
            # An attempt that ends after another one was counted must not count as well.
            if stage > known:
                self._total += attempts[min(attempts)]
                self._last_stage = max(stage, self._last_stage)
        return self._total


def count_in_task(by_attempt: Accumulator[ByAttempt], counts: Counts) -> None:
    """Add ``counts`` of some rows to those of the attempt that this worker runs."""
    task = TaskContext.get()
    assert task is not None
    by_attempt.add({(task.stageId(), task.partitionId()): {task.taskAttemptId(): counts}})
