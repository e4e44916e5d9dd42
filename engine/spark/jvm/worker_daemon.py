"""The process from which Spark forks its Python workers: ``pyspark.daemon`` with modules preloaded.

Otherwise each worker of a fresh session loads Arrow, numpy and gscope's tasks by itself, in a third
of a second of CPU time. Workers forked from here share them. Spark starts this module as its
``spark.python.daemon.module``.
"""

from __future__ import annotations

import gc
import importlib

from pyspark import daemon

from gscope.queries.run_folder.startup import settle

_LOADED = ("pyspark.worker", "gscope.engine.spark.tasks.aggregate_task")
"""The worker, and the task of aggregations, which imports what all tasks share."""


def main() -> None:
    """Load, then fork workers for as long as Spark lives."""
    settle()
    for name in _LOADED:
        importlib.import_module(name)
    # A worker collects garbage after each task: frozen objects are not visited and stay shared.
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
