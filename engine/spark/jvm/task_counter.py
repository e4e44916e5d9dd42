"""The number of ended tasks of Spark, which shows the progress of a long step."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXECUTOR = "driver"
"""The one executor of a session on this machine."""


def ended_tasks(session: SparkSession) -> int:
    """Return how many tasks have ended since the session started, failed ones included.

    Spark reports an end within a few seconds.

    Raises:
        Exception: whatever py4j raises when Java is gone or the session is stopped.
    """
    store = session.sparkContext._jsc.sc().statusStore()
    executor = store.executorSummary(_EXECUTOR)
    return int(executor.completedTasks()) + int(executor.failedTasks())
