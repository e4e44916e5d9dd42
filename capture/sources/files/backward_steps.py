"""How far captures step back in time, found by a walk over their records.

A packet is late when its time is below that of a packet before it by more than the interface's skew. A file is finite,
so the skew at which no packet is late can be known before the first heartbeat is sent: the walk reads the file once
more, indexes it with the kernels that the replay uses, and looks at times alone. It runs while the LFTAs' kernels
load, and leaves the file in the page cache.
"""

from __future__ import annotations

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.capture.kernels.jit import kernel
from gscope.capture.sources.files.compressed import MAGIC_BYTES, is_compressed
from gscope.capture.sources.files.file import FileSource, ReadProgress
from gscope.capture.sources.files.held import borrow, status_of
from gscope.capture.sources.files.open import open_source
from gscope.capture.sources.files.stored import STANDARD_INPUT
from gscope.capture.sources.files.walk_loop import walk_blocks
from gscope.errors import CaptureError, CutCaptureError
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    import numpy as np
    from numpy.typing import NDArray

    from gscope.capture.sources.base import BlockSource

WALKED_BYTES = 8 << 30
"""Uncompressed captures of one run are walked up to this size in all: a walk reads 3 to 5 GB a second from the page
cache."""

WALKED_COMPRESSED_BYTES = 128 << 20
"""The same of compressed captures, as stored: unpacking takes 10 to 30 times as long as walking."""

UNPACKED_BYTES = 4 << 30
"""A walk that has seen this many bytes of packets in compressed captures is given up: they may be a bomb."""

PASS_BYTES = 64 << 20
"""Read by the compiled loop between two looks at whether the walk is to stop: some hundredths of a second."""

_THREADS = 2


class BackwardSteps:
    """Walks over the captures of interfaces, in threads of its own.

    Interfaces are taken in their order as long as the limits allow, so that which of them are walked never depends on
    timing.

    Args:
        files: the captures of each interface.
    """

    def __init__(self, files: Mapping[str, Sequence[str]]) -> None:
        self._stop = threading.Event()
        self._pool: ThreadPoolExecutor | None = None
        self._walks: dict[str, Future[int | None]] = {}
        plain_left, compressed_left = WALKED_BYTES, WALKED_COMPRESSED_BYTES
        for interface, paths in files.items():
            sizes = _sizes(paths)
            if sizes is None or sizes[0] > plain_left or sizes[1] > compressed_left:
                continue
            plain_left, compressed_left = plain_left - sizes[0], compressed_left - sizes[1]
            most_bytes = sizes[0] + UNPACKED_BYTES if sizes[1] else WALKED_BYTES
            self._pool = self._pool or ThreadPoolExecutor(_THREADS, "walk")
            self._walks[interface] = self._pool.submit(_walk, paths, most_bytes, self._stop)

    def deepest_ns(self, interface: str) -> int | None:
        """Wait for the walk over an interface, and return by how much its packets step back at most.

        None if the interface was not walked to its end: it is a pipe or too large, or ``stop`` was called.
        """
        walk = self._walks.get(interface)
        return None if walk is None else walk.result()

    def stop(self) -> None:
        """End all walks soon; from any thread."""
        self._stop.set()

    def close(self) -> None:
        """End all walks and their threads; harmless when called twice."""
        self.stop()
        if self._pool is not None:
            self._pool.shutdown()


class Walk:
    """A walk over sources of which one follows the other.

    Args:
        most_bytes: of packets; beyond that the walk is given up.
        stop: gives the walk up when set.

    Attributes:
        deepest_ns: by how much a packet stepped back at most.
    """

    def __init__(self, most_bytes: int, stop: threading.Event) -> None:
        self.deepest_ns = 0
        self._latest_ns = MIN_TIME_NS
        self._bytes_left = most_bytes
        self._stop = stop

    def over(self, source: BlockSource) -> bool:
        """Walk over an open source to its end; return whether it was reached."""
        while not self._gives_up() and (block := source.next_block()) is not None:
            self._latest_ns, step_ns, walked = _deepest(
                block.time_ns, block.caplen, block.count, self._latest_ns
            )
            self.deepest_ns = max(self.deepest_ns, step_ns)
            self._bytes_left -= walked
            if isinstance(source, FileSource):
                while not self._gives_up() and self._pass(source):
                    pass
        return not self._gives_up()

    def _gives_up(self) -> bool:
        return self._stop.is_set() or self._bytes_left < 0

    def _pass(self, source: FileSource) -> bool:
        """Let a compiled loop walk on; return whether there may be more for it behind."""
        raw = source.begin_pass()
        if raw is None:
            return False
        blocks = max(PASS_BYTES // raw.limit, 1)
        self._latest_ns, self.deepest_ns, packets, walked, read, done, filled, used = walk_blocks(
            blocks,
            raw.descriptor,
            raw.block.data,
            raw.carried,
            raw.limit,
            raw.layout,
            self._latest_ns,
            self.deepest_ns,
        )
        self._bytes_left -= walked
        source.end_pass(
            raw.block, ReadProgress(read, done, packets, walked, filled, used, 0, 0, 0, 0)
        )
        return read > 0 and packets > 0


@kernel
def _deepest(
    times: NDArray[np.int64], caplen: NDArray[np.int32], count: int, latest: int
) -> tuple[int, int, int]:
    """Return the latest time, how far a packet is behind the latest before it at most, and the packets' bytes."""
    deepest = 0
    walked_bytes = 0
    for i in range(count):
        time = times[i]
        walked_bytes += caplen[i]
        if time >= latest:
            latest = time
        elif time < 0 and latest > MAX_TIME_NS + time:
            # The difference would wrap.
            deepest = MAX_TIME_NS
        else:
            deepest = max(deepest, latest - time)
    return latest, deepest, walked_bytes


def _walk(paths: Sequence[str], most_bytes: int, stop: threading.Event) -> int | None:
    """Return by how much the packets of captures, one after the other, step back at most; None if that is unknown."""
    walk = Walk(most_bytes, stop)
    for path in paths:
        try:
            source = open_source(path)
        except CutCaptureError:
            if len(paths) == 1:
                return None
            # Left out by the replay, too.
            continue
        except CaptureError:
            # The replay opens it, too, and reports that.
            return None
        try:
            if not walk.over(source):
                return None
        finally:
            source.close()
    return walk.deepest_ns


def _sizes(paths: Sequence[str]) -> tuple[int, int] | None:
    """Return the bytes of plain and of compressed files; None if one of ``paths`` is not a regular file."""
    plain = compressed = 0
    for path in paths:
        try:
            # Looked at before it is opened: opening a named pipe and closing it again would break its writer.
            if path == STANDARD_INPUT or not stat.S_ISREG(status_of(path).st_mode):
                return None
            with borrow(path) or Path(path).open("rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                is_packed = is_compressed(file.read(MAGIC_BYTES) or b"")
        except (OSError, ValueError):
            return None
        compressed += size if is_packed else 0
        plain += 0 if is_packed else size
    return plain, compressed
