"""How many tasks of Spark have ended: what a step that lasts long is measured by."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXECUTOR = "driver"
"""The one executor of a session in this machine."""


def ended_tasks(session: SparkSession) -> int:
    """Tasks that have ended since the session began, well or not; Spark tells of them within some seconds.

    Raises:
        Exception: whatever py4j raises when Java is gone or the session is stopped.
    """
    store = session.sparkContext._jsc.sc().statusStore()
    executor = store.executorSummary(_EXECUTOR)
    return int(executor.completedTasks()) + int(executor.failedTasks())
