"""Settings that every process of gscope makes first, to start faster.

Half a dozen processes answer a command within seconds, perhaps on two cores, so that the work of
each before its first packet or row counts several times.
"""

from __future__ import annotations

import gc
import os

from gscope.queries.run_folder.allocator import keep_freed_memory

_ALLOCATIONS_BETWEEN_COLLECTIONS = 100_000
"""With Python's default of 700, imports cause some hundred collections that find nothing."""


def settle() -> None:
    """Collect garbage rarely, keep freed memory, and keep numpy's BLAS from starting threads.

    To be called before numpy and pyarrow are imported. No process of gscope keeps an object for each packet or
    tuple, so cycles are few. gscope multiplies no matrices, but each BLAS thread spins for a while
    when it starts; child processes inherit that setting.
    """
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    keep_freed_memory()
