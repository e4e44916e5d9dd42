"""How many rows of a join fit into the heap of the Java that runs its tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.tasks.task import MAX_TASK_ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESERVED_BYTES = 300 << 20
"""The part of the heap that Spark reserves for itself (its unified memory manager)."""

EXECUTION_SHARE = 0.6
"""``spark.memory.fraction``: the share of the rest for joins, sorts and aggregations."""

JOINED_ROW_BYTES = 260
"""Bytes of a joined row, of either side, in the hash tables of all tasks that run at once.

Measured on joins of flows, by the sizes at which they failed.
"""


def joined_rows(heap_bytes: int, row_bytes: int = 0) -> int:
    """Return how many rows a join may read with its smaller side in hash tables.

    Hash tables cannot spill.

    Args:
        heap_bytes: the size of the heap.
        row_bytes: the average bytes of a row in a file.
    """
    execution_bytes = max(0, heap_bytes - RESERVED_BYTES) * EXECUTION_SHARE
    return min(MAX_TASK_ROWS, int(execution_bytes / max(JOINED_ROW_BYTES, 2 * row_bytes)))


def heap_bytes(session: SparkSession) -> int:
    """Return the largest heap of the Java that runs tasks: an executor's, or the session's own."""
    context = session.sparkContext
    if not context._jsc.sc().isLocal():
        memory: int = context._jsc.sc().executorMemory()
        return memory << 20
    java: int = session._jvm.java.lang.Runtime.getRuntime().maxMemory()  # type: ignore[union-attr]
    return java
