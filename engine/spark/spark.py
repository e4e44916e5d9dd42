"""Spark as the evaluation of steps sees it: a session that may still have to start.

Small steps of plain operators need no Spark (``engine/spark/tasks/here.py``), so code that needs
the session asks for it at that moment, and not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gscope.records import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Spark(Protocol):
    """The Spark of a process; for all threads."""

    @property
    def session(self) -> SparkSession:
        """The session. Spark starts now unless it has started, and the caller waits for it.

        The process ends if the session cannot be opened.

        Raises:
            EngineError: Java cannot be started.
        """

    @property
    def is_ready(self) -> bool:
        """Whether ``session`` returns at once."""

    @property
    def cores(self) -> int:
        """The number of tasks that run at a time."""


@dataclass(frozen=True, slots=True)
class ReadySpark:
    """A session that is open.

    Attributes:
        session: the session.
    """

    session: SparkSession

    @property
    def is_ready(self) -> bool:
        """True."""
        return True

    @property
    def cores(self) -> int:
        """The number of tasks that run at a time."""
        return self.session.sparkContext.defaultParallelism
