"""Memory for kernels: zeroed, aligned to cache lines, on huge pages once it is busy.

Accesses to a group table are random, so with pages of 4 KiB nearly every packet misses the TLB.
Huge pages avoid that, but a table on them takes all its memory with its first groups, and there may
be hundreds of tables with a few groups each: so they are requested once a table is in use.
"""

from __future__ import annotations

import contextlib
import mmap
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LINE_BYTES = 64
HUGE_PAGE_BYTES = 2 << 20

_MADV_COLLAPSE = 25
"""MADV_COLLAPSE of Linux 6.1: move a mapping to huge pages now; ``mmap`` does not define it yet."""


class Area:
    """An area of ``size`` zeroed bytes; memory that is never touched is never allocated.

    Attributes:
        bytes: the memory.
        address: address of its first byte.
    """

    def __init__(self, size: int) -> None:
        is_large = size >= HUGE_PAGE_BYTES
        align = HUGE_PAGE_BYTES if is_large else LINE_BYTES
        # Private: shared memory, which is what ``mmap`` makes by default, cannot be collapsed.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._mapping = mmap.mmap(-1, size + align, flags=flags) if is_large else None
        whole = (
            np.zeros(size + align, np.uint8)
            if self._mapping is None
            else np.frombuffer(self._mapping, np.uint8)
        )
        self._skip = -whole.ctypes.data % align
        self.bytes: NDArray[np.uint8] = whole[self._skip : self._skip + size]
        self.address = self.bytes.ctypes.data

    def collapse(self) -> None:
        """Move a large area to huge pages if the system can."""
        if self._mapping is not None:
            with contextlib.suppress(OSError):
                size = self.bytes.size // HUGE_PAGE_BYTES * HUGE_PAGE_BYTES
                self._mapping.madvise(_MADV_COLLAPSE, self._skip, size)
