"""Memory that is freed and needed again soon, without the kernel in between.

A step allocates and frees columns of some megabytes hundreds of times. As glibc and Arrow's own
allocator are set, most of that memory goes back to the kernel at once, which must clear each page
before it gives it out again: a tenth to a fifth of all CPU time of a replay
(docs/decisions/0065-freed-memory.md).
"""

from __future__ import annotations

import ctypes
import os

KEPT_BYTES = 256 << 20
"""The most freed memory at the end of a heap that a process keeps."""

_GROWTH_BYTES = 16 << 20
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX, _ARENA_MAX = -1, -2, -4, -8
"""Parameters of ``mallopt(3)``."""


def keep_freed_memory() -> None:
    """Keep up to ``KEPT_BYTES`` of freed memory in the one heap of all threads, Arrow's included.

    To be called before pyarrow is imported. Where users have set glibc's or Arrow's allocator by
    the environment, or the C library has no ``mallopt``, that part stays as it is.
    """
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
        # Importing pyarrow starts a thread of jemalloc, which would then have nothing to do. A
        # daemon that still holds privileges may have no thread (docs/decisions/0089-no-numba.md).
        os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    if "GLIBC_TUNABLES" in os.environ or any(name.startswith("MALLOC_") for name in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_MAX, 0)
        # What one thread has freed is of use to the others, which are new for each step.
        mallopt(_ARENA_MAX, 1)
        mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(_TOP_PAD, _GROWTH_BYTES)
