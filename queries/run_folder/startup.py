"""What every process of gscope settles first, because all of them live on start-up time.

A command is answered in seconds by half a dozen processes on what may be two cores, so what each does
before its first packet or row counts several times.
"""

from __future__ import annotations

import gc
import os

_ALLOCATIONS_BETWEEN_COLLECTIONS = 100_000
"""Python's default of 700 walks all that the imports of a start have made some hundred times, for nothing."""


def settle() -> None:
    """Seldom collect garbage, and keep numpy's BLAS from starting threads; call it before numpy is imported.

    No process of gscope keeps an object per packet or tuple, so cycles are few; and nothing multiplies matrices, but
    each BLAS thread spins for a while when it starts. Processes started from here inherit the second.
    """
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
