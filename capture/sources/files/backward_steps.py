"""The largest backward step in the times of captures, found by a walk over their records.

A packet is late if an earlier packet has a time that is greater by more than the interface's skew.
A file is finite, so the skew at which no packet is late can be determined before the first
heartbeat: the walk reads the file once more, indexes it with the kernels of the replay, and
examines only times. It runs while the LFTAs' kernels load, and leaves the file in the page cache.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from gscope.capture.kernels.jit import native_kernel
from gscope.capture.kernels.language.intrinsics import ld32, ld64
from gscope.capture.kernels.language.kinds import Kind, RecordKind
from gscope.capture.sources.files.file import FileSource, ReadProgress
from gscope.capture.sources.files.open import open_source
from gscope.capture.sources.files.sizes import stored_bytes
from gscope.capture.sources.files.walk_loop import walk_blocks
from gscope.errors import CaptureError, CutCaptureError
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from gscope.capture.sources.base import BlockSource

WALKED_BYTES = 8 << 30
"""Total size of uncompressed captures of a run that are walked: a walk reads 3 to 5 GB a second
from the page cache."""

WALKED_COMPRESSED_BYTES = 128 << 20
"""The same for compressed captures, as stored: decompression takes 10 to 30 times as long as a
walk."""

UNPACKED_BYTES = 4 << 30
"""Bytes of packets in compressed captures after which a walk stops: they may be a decompression
bomb."""

PASS_BYTES = 64 << 20
"""Bytes that the compiled loop reads between two checks for ``stop``: some hundredths of a
second."""

_THREADS = 2


class BackwardSteps:
    """Walks over the captures of interfaces, in threads of their own.

    Interfaces are walked in order while the limits allow it, so that timing never decides which
    are.

    Args:
        files: the captures of each interface.
    """

    def __init__(self, files: Mapping[str, Sequence[str]]) -> None:
        self._stop = threading.Event()
        self._pool: ThreadPoolExecutor | None = None
        self._walks: dict[str, Future[int | None]] = {}
        self._certain: set[str] = set()
        plain_left, compressed_left = WALKED_BYTES, WALKED_COMPRESSED_BYTES
        for interface, paths in files.items():
            sizes = stored_bytes(paths)
            if sizes is None or sizes[0] > plain_left or sizes[1] > compressed_left:
                continue
            plain_left, compressed_left = plain_left - sizes[0], compressed_left - sizes[1]
            most_bytes = sizes[0] + UNPACKED_BYTES if sizes[1] else WALKED_BYTES
            self._pool = self._pool or ThreadPoolExecutor(_THREADS, "walk")
            self._walks[interface] = self._pool.submit(_walk, paths, most_bytes, self._stop)
            if len(paths) == 1 and not sizes[1]:
                self._certain.add(interface)

    def deepest_ns(self, interface: str) -> int | None:
        """Wait for the walk over an interface, and return its largest backward step.

        Returns None if the interface was not walked to its end: a pipe, too large, or ``stop`` was
        called.
        """
        walk = self._walks.get(interface)
        return None if walk is None else walk.result()

    def is_under_way(self, interface: str) -> bool:
        """Return whether a walk is not over that is certain to come to the end of what can be read.

        It is over one plain file, which the replay reads as far. So no packet will have been late.
        """
        return interface in self._certain and not self._walks[interface].done()

    def stop(self) -> None:
        """End all walks soon; from any thread."""
        self._stop.set()

    def close(self) -> None:
        """End all walks and their threads; harmless when called twice."""
        self.stop()
        if self._pool is not None:
            self._pool.shutdown()


class Walk:
    """A walk over several sources in sequence.

    Args:
        most_bytes: bytes of packets after which the walk stops.
        stop: stops the walk when set.

    Attributes:
        deepest_ns: largest backward step so far.
    """

    def __init__(self, most_bytes: int, stop: threading.Event) -> None:
        self.deepest_ns = 0
        self._latest_ns = MIN_TIME_NS
        self._bytes_left = most_bytes
        self._stop = stop

    def over(self, source: BlockSource) -> bool:
        """Walk over an open source to its end; return whether it was reached."""
        while not self._is_over() and (block := source.next_block()) is not None:
            self._latest_ns, step_ns, walked = _deepest(
                block.index_addresses.time_ns,
                block.index_addresses.caplen,
                block.count,
                self._latest_ns,
            )
            self.deepest_ns = max(self.deepest_ns, step_ns)
            self._bytes_left -= walked
            if isinstance(source, FileSource):
                while not self._is_over() and self._pass(source):
                    pass
        return not self._is_over()

    def _is_over(self) -> bool:
        return self._stop.is_set() or self._bytes_left < 0

    def _pass(self, source: FileSource) -> bool:
        """Let a compiled loop continue; return whether it may be called again."""
        raw = source.begin_pass()
        if raw is None:
            return False
        blocks = max(PASS_BYTES // raw.limit, 1)
        self._latest_ns, self.deepest_ns, packets, walked, read, done, filled, used = walk_blocks(
            blocks,
            raw.descriptor,
            raw.block.data.ctypes.data,
            raw.carried,
            raw.limit,
            *raw.layout,
            self._latest_ns,
            self.deepest_ns,
        )
        self._bytes_left -= walked
        source.end_pass(
            raw.block, ReadProgress(read, done, packets, walked, filled, used, 0, 0, 0, 0)
        )
        return bool(read > 0 and packets > 0)


@native_kernel(*(Kind.INT,) * 4, result=RecordKind(None, (Kind.INT,) * 3))
def _deepest(times: int, caplen: int, count: int, latest: int) -> tuple[int, int, int]:
    """Return the latest time, the largest backward step, and the bytes of the packets.

    Args:
        times: address of the times.
        caplen: address of the captured lengths, of 32 bits.
        count: number of packets.
        latest: greatest time before them.
    """
    deepest = 0
    walked_bytes = 0
    for i in range(count):
        time = ld64(times + 8 * i)
        walked_bytes += ld32(caplen + 4 * i)
        if time >= latest:
            latest = time
        elif time < 0 and latest > MAX_TIME_NS + time:
            # The difference would overflow.
            deepest = MAX_TIME_NS
        else:
            deepest = max(deepest, latest - time)
    return latest, deepest, walked_bytes


def _walk(paths: Sequence[str], most_bytes: int, stop: threading.Event) -> int | None:
    """Return the largest backward step in captures read in sequence; None if it is unknown."""
    walk = Walk(most_bytes, stop)
    for path in paths:
        try:
            source = open_source(path)
        except CutCaptureError:
            if len(paths) == 1:
                return None
            # The replay skips it, too.
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
