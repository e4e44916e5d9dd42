"""Python workers come from the daemon that has loaded what tasks need."""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_workers_are_forked_with_their_libraries(spark: SparkSession) -> None:
    def seen_by_a_worker(_: int) -> tuple[str, bool, int, int]:
        """What a worker says of itself.

        It is the command of the parent, whether the tasks' code is loaded, frozen objects, and the
        threads.
        """
        parent = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        is_loaded = "gscope.engine.spark.tasks.aggregate_task" in sys.modules
        threads = {
            (task / "comm").read_text(encoding="utf-8").strip()
            for task in Path("/proc/self/task").iterdir()
        }
        blas = sum("blas" in thread.lower() for thread in threads)
        return parent, is_loaded, gc.get_freeze_count(), blas

    ((parent, is_loaded, frozen, blas),) = (
        spark.sparkContext.parallelize([0], 1).map(seen_by_a_worker).collect()
    )
    assert "gscope.engine.spark.jvm.worker_daemon" in parent
    assert is_loaded
    assert frozen > 10_000
    assert blas == 0


def test_a_worker_that_is_killed_does_not_take_the_daemon_along(spark: SparkSession) -> None:
    def parent(_: int) -> int:
        return os.getppid()

    context = spark.sparkContext
    before = context.parallelize([0], 1).map(parent).collect()
    (worker,) = context.parallelize([0], 1).map(lambda _: os.getpid()).collect()
    ended = select.poll()
    ended.register(descriptor := os.pidfd_open(worker), select.POLLIN)
    os.kill(worker, signal.SIGKILL)
    assert ended.poll(10_000)
    os.close(descriptor)
    assert context.parallelize([0], 1).map(parent).collect() == before
