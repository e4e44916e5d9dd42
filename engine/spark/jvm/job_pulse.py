"""Signs of life of a job whose Spark is not ready yet, or is not needed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gscope.engine.spark.jvm.jvm_watchdog import PERIOD_S
from gscope.queries.streams.process_events import JobAlive

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.engine.monitoring.step_progress import StepWatch
    from gscope.queries.streams.event_codec import EventWriter


class JobPulse:
    """A thread that reports the current step every second; Java's watchdog takes over from it.

    Args:
        events: the events for the supervisor.
        watch: the progress of the current step.
        ended: returns the number of tasks that have ended in this process so far.
        awaits_spark: returns whether the step waits until Spark is ready.
    """

    def __init__(
        self,
        events: EventWriter,
        watch: StepWatch,
        ended: Callable[[], int],
        awaits_spark: Callable[[], bool],
    ) -> None:
        self._events = events
        self._watch = watch
        self._ended = ended
        self._awaits_spark = awaits_spark
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="job-pulse", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; harmless if it has ended."""
        self._is_over.set()

    def _beat(self) -> None:
        while not self._is_over.wait(PERIOD_S):
            self._events.send(self._alive())

    def _alive(self) -> JobAlive:
        step = self._watch.look(self._ended()) if self._watch.is_under_way else None
        awaits_spark = self._awaits_spark()
        if step is None:
            return JobAlive(awaits_spark=awaits_spark)
        seconds, still_s = round(step.seconds, 1), round(step.still_seconds, 1)
        return JobAlive(step.number, seconds, still_s, awaits_spark)
