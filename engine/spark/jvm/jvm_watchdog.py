"""Liveness of Spark's Java: reported to the supervisor while Java answers, and again at its end."""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from gscope.engine.spark.jvm.ended_java import how_java_ended, out_of_memory
from gscope.engine.spark.jvm.jvm_log import bound_log
from gscope.errors import (
    GscopeError,
    GsqlError,
    JavaGoneError,
    JavaMemoryError,
    UsageError,
    UserCodeError,
)
from gscope.queries.streams.process_events import JavaFailed, JobAlive, ProcessError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pyspark.sql import SparkSession

    from gscope.engine.monitoring.step_progress import StepWatch
    from gscope.engine.spark.cluster.executors import ExecutorWatch
    from gscope.engine.spark.jvm.gateway import JvmProcess
    from gscope.queries.streams.event_codec import EventWriter

PERIOD_S = 1.0


class JvmWatchdog:
    """A context manager whose thread sends ``alive`` while Java answers, however long a step takes.

    The thread also bounds Java's log. If Java ends, it sends ``failed`` and ends the whole process:
    the main thread may be waiting for something else.

    Args:
        jvm: the process of Java.
        session: the session in it.
        events: the events for the supervisor.
        watch: the progress of the current step, which ``alive`` reports.
        end: ends this process; the supervisor can start it again.
        executors: watches the executors of a cluster; None without one.

    Raises:
        JavaGoneError: on exit, in place of what Spark raises when its Java is gone or out of
            memory.
    """

    def __init__(
        self,
        jvm: JvmProcess,
        session: SparkSession,
        events: EventWriter,
        watch: StepWatch,
        end: Callable[[int], object] = os._exit,
        executors: ExecutorWatch | None = None,
    ) -> None:
        self._jvm = jvm
        self._session = session
        self._events = events
        self._watch = watch
        self._end = end
        self._executors = executors
        self._process = os.pidfd_open(jvm.pid)
        self._is_over, self._over = os.pipe()
        self._thread = threading.Thread(target=self._beat, name="jvm-watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._over)
        if not isinstance(error, Exception):
            return
        if (gone := how_java_ended(self._jvm)) is not None:
            raise gone from error
        # Spark may fail the step for lack of memory and go on; our own errors explain themselves.
        if not isinstance(error, GscopeError) and "OutOfMemoryError" in str(error):
            raise out_of_memory(self._jvm) from error

    def _beat(self) -> None:
        ask = None
        waiter = select.poll()
        waiter.register(self._process, select.POLLIN)
        waiter.register(self._is_over, select.POLLHUP)
        while not (ready := waiter.poll(PERIOD_S * 1000)):
            bound_log(self._jvm.log)
            with suppress(Exception):  # the poll above shows its end, whatever the connection does
                # Looked up once: each name costs a call.
                ask = ask or self._session._jvm.java.lang.System.nanoTime  # type: ignore[union-attr]
                ask()
                self._events.send(self._alive())
            self._ensure_executors()
        if all(descriptor == self._process for descriptor, _ in ready):
            gone = how_java_ended(self._jvm)
            report_gone(self._events, gone or JavaGoneError("Spark's Java ended"))
            self._end(1)
        os.close(self._process)
        os.close(self._is_over)

    def _ensure_executors(self) -> None:
        """End the process if its cluster has lost all executors."""
        failure = None
        with suppress(Exception):  # as above
            failure = self._executors and self._executors.failure()
        if failure:
            report_gone(self._events, JavaGoneError(failure))
            self._end(1)

    def _alive(self) -> JobAlive:
        step = None
        if self._watch.is_under_way:
            with suppress(Exception):  # as above
                step = self._watch.look(ended_tasks(self._session))
        if step is None:
            return JobAlive()
        return JobAlive(step.number, round(step.seconds, 1), round(step.still_seconds, 1))


def report_gone(events: EventWriter, error: JavaGoneError) -> None:
    """Report that Java is gone, and whether for lack of memory."""
    events.send(JavaFailed(str(error), out_of_memory=isinstance(error, JavaMemoryError)))


def report_failure(events: EventWriter, error: GscopeError) -> None:
    """Report the error with which the process is about to end."""
    if isinstance(error, JavaGoneError):
        report_gone(events, error)
        return
    is_final = isinstance(error, UserCodeError | UsageError | GsqlError)
    events.send(ProcessError(str(error), is_final=is_final))


def ended_tasks(session: SparkSession) -> int:
    """Return how many tasks have ended since the session started, failed ones included.

    Those of executors that are gone count as well.

    Spark reports an end within a few seconds.

    Raises:
        Exception: whatever py4j raises when Java is gone or the session is stopped.
    """
    executors = session.sparkContext._jsc.sc().statusStore().executorList(False)
    each = (executors.apply(number) for number in range(executors.size()))
    return sum(int(one.completedTasks()) + int(one.failedTasks()) for one in each)
