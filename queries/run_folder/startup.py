"""Settings that every process of gscope makes first, to start faster.

Half a dozen processes answer a command within seconds, perhaps on two cores, so that the work of
each before its first packet or row counts several times.
"""

from __future__ import annotations

import gc
import os
import sys

from gscope.queries.run_folder.allocator import keep_freed_memory

_ALLOCATIONS_BETWEEN_COLLECTIONS = 100_000
"""With Python's default of 700, imports cause some hundred collections that find nothing."""


def settle() -> None:
    """Collect garbage rarely, and keep freed memory.

    Also start no threads for BLAS, and spare Arrow a search. To be called before numpy and pyarrow
    are imported. No process of gscope keeps an object for each packet or tuple, so cycles are few.
    gscope multiplies no matrices, but each BLAS thread spins for a while when it starts; child
    processes inherit that setting.
    """
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    keep_freed_memory()
    _stop_searching("dateutil")


def _stop_searching(name: str) -> None:
    """Let a module that is not installed be looked for once, not in all folders at each import.

    Arrow imports dateutil for each value of Python that it gets without a type, and does without it
    if it is not there: 0.1 ms for an addition of 1.
    """
    if not any(finder.find_spec(name, None) for finder in sys.meta_path):
        sys.modules[name] = None  # type: ignore[assignment]  # importing it fails at once
