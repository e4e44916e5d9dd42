"""Tasks of small steps that run in the job's own process, before Spark is ready.

Starting Java and Spark takes longer than a small capture takes to read and aggregate. A task is
Python that reads files, computes with Arrow and numpy and writes a file, wherever it runs, so its
rows are the same here. Arrow and numpy release the interpreter's lock, so threads share the cores.
"""

from __future__ import annotations

import secrets
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, TypeVar

from gscope.engine.spark.tasks.slots import Slots
from gscope.queries.run_folder.cores import usable_cores
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.engine.spark.tasks.task import Runnable

_I = TypeVar("_I")
_R = TypeVar("_R")

MOST_ROWS = 8_000_000
"""Rows that tasks may hold at the same time; more are left to Spark, as memory of other
processes."""


class TasksHere:
    """Runs tasks in threads of this process; for all threads that evaluate a step.

    Args:
        cores: the number of threads; None for one on each core that this process may use.

    Attributes:
        cores: the number of threads.
        slots: held while a task runs, also by folds of other threads: so at most one for each core
            has its rows in memory.
    """

    def __init__(self, cores: int | None = None) -> None:
        self.cores = cores or usable_cores()
        self.slots = Slots(self.cores)
        self._ended = 0
        self._counting = threading.Lock()

    @property
    def ended(self) -> int:
        """The number of tasks that have ended so far, failed ones included; for any thread."""
        return self._ended

    def run(self, tasks: Sequence[Runnable[_R]], rows: Sequence[int] = ()) -> list[_R]:
        """Run ``tasks``, started in their order, and return their results.

        After a failure no further task begins; it is raised once those that run have ended.

        Args:
            tasks: the tasks.
            rows: about how many rows each of them reads; () if that is unknown.
        """
        # A job that was killed may have left files in the same folder.
        job = secrets.token_hex(4)
        failed = threading.Event()

        def run(number: int, task: Runnable[_R]) -> _R:
            if failed.is_set():
                raise CancelledError
            try:
                with self.slots.held(rows[number] if rows else 0):
                    return task.run(f"{job}-{number}")
            except BaseException:
                failed.set()
                raise
            finally:
                with self._counting:
                    self._ended += 1

        with ThreadPoolExecutor(self.cores, "task") as pool:
            futures = [pool.submit(run, number, task) for number, task in enumerate(tasks)]
            # Tasks that did not begin are behind the one that failed.
            return [future.result() for future in futures]

    def measured_attempts(
        self, items: Sequence[_I], work: Callable[[_I, str], _R]
    ) -> tuple[list[_R], int]:
        """Return the result of ``work`` for each item, and the CPU time of all in ns."""
        done = self.run([_Attempt(item, work) for item in items])
        return [result for result, _ in done], sum(cpu_ns for _, cpu_ns in done)


@dataclass(frozen=True, slots=True)
class _Attempt(Generic[_I, _R]):
    """The work on one item."""

    item: _I
    work: Callable[[_I, str], _R]

    def run(self, attempt: str) -> tuple[_R, int]:
        """Do it; return also the CPU time of this thread meanwhile."""
        began_ns = time.thread_time_ns()
        result = self.work(self.item, attempt)
        return result, time.thread_time_ns() - began_ns
