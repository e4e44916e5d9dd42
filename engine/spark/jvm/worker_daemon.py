"""The process that Spark forks its Python workers from: ``pyspark.daemon`` with what tasks need loaded.

Each worker of a fresh session would load Arrow, numpy and gscope's tasks by itself, a third of a second of CPU time
each; forked from here they have them, and share the memory. Spark starts it by ``spark.python.daemon.module``.
"""

from __future__ import annotations

import gc
import importlib

from pyspark import daemon

from gscope.queries.run_folder.startup import settle

_LOADED = ("pyspark.worker", "gscope.engine.spark.tasks.aggregate_task")
"""The worker, and the task of every aggregation, which brings along what the others share."""


def main() -> None:
    """Load, then fork workers for as long as Spark lives."""
    settle()
    for name in _LOADED:
        importlib.import_module(name)
    # A worker collects garbage after each task: what is here stays, and stays shared.
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
