"""Whether Spark's Java is there: told to the supervisor while it answers, and noticed when it is gone."""

from __future__ import annotations

import os
import select
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from gscope.engine.spark.ended_tasks import ended_tasks
from gscope.engine.spark.jvm_log import bound_log
from gscope.errors import JavaGoneError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pyspark.sql import SparkSession

    from gscope.engine.events import Events
    from gscope.engine.spark.jvm import JvmProcess
    from gscope.engine.step_watch import StepWatch

PERIOD_S = 1.0
_DEATH_WAIT_S = 1.0
"""A connection that breaks shows before the end of the process can be asked for."""


class Pulse:
    """Sends ``alive`` as long as Java answers, be a step as long as it may; a context manager.

    It bounds Java's log meanwhile. If Java ends it says ``failed``, and ends the whole process: the main thread may wait for something else.

    Args:
        jvm: the process.
        session: in it.
        events: to the supervisor.
        watch: of the step at hand; what it says is sent along.
        end: ends this process; it can be started again.

    Raises:
        JavaGoneError: at its end, in the place of what Spark raises when its Java is gone.
    """

    def __init__(
        self,
        jvm: JvmProcess,
        session: SparkSession,
        events: Events,
        watch: StepWatch,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._jvm = jvm
        self._session = session
        self._events = events
        self._watch = watch
        self._end = end
        self._process = os.pidfd_open(jvm.pid)
        self._is_over, self._over = os.pipe()
        self._thread = threading.Thread(target=self._beat, name="pulse", daemon=True)

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
        if isinstance(error, Exception) and self._jvm.wait(_DEATH_WAIT_S) is not None:
            raise self._gone() from error

    def _beat(self) -> None:
        ask = None
        waiter = select.poll()
        waiter.register(self._process, select.POLLIN)
        waiter.register(self._is_over, select.POLLHUP)
        while not (ready := waiter.poll(PERIOD_S * 1000)):
            bound_log(self._jvm.log)
            with suppress(Exception):  # its end shows above, whatever the connection says
                # Looked up once: each name is a question of its own.
                ask = ask or self._session._jvm.java.lang.System.nanoTime  # type: ignore[union-attr]
                ask()
                self._events.send("alive", **self._step_at_hand())
        if all(descriptor == self._process for descriptor, _ in ready):
            self._events.send("failed", message=str(self._gone()))
            self._end(1)
        os.close(self._process)
        os.close(self._is_over)

    def _step_at_hand(self) -> dict[str, int | float]:
        step = None
        if self._watch.is_under_way:
            with suppress(Exception):  # as above
                step = self._watch.look(ended_tasks(self._session))
        if step is None:
            return {}
        return {
            "step": step.number,
            "step_s": round(step.seconds, 1),
            "still_s": round(step.still_seconds, 1),
        }

    def _gone(self) -> JavaGoneError:
        code = self._jvm.wait(_DEATH_WAIT_S)
        if code is not None and code < 0:
            return JavaGoneError(f"Spark's Java ended with signal {signal.Signals(-code).name}")
        return JavaGoneError(f"Spark's Java ended with code {code}")
