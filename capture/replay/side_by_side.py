"""Interfaces of a replay that work side by side, each in a thread of its own.

The trace clock moves all interfaces of a replay to the same time, step by step. Within a step they
do not depend on each other: each has its own source, LFTAs and streams. So they share the cores, if
their steps are long enough for the threads to pay: a step covers the time in which the interface
with the most packets reads ``PART_BYTES``.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Self

from gscope.queries.run_folder.cores import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from gscope.capture.replay.trace_interface import TraceInterface

PART_BYTES = 32 << 20
"""About the most that an interface reads in a step: a hundredth of a second of work or two. At its
end all wait for the one that has emptied an output buffer more, so short steps cost more."""


class SideBySide:
    """Advances interfaces, in threads if several of them and several cores are there.

    Args:
        interfaces: all interfaces of the replay.
        may_run_ahead: whether steps may be long enough for threads.
    """

    def __init__(self, interfaces: Sequence[TraceInterface], *, may_run_ahead: bool) -> None:
        threads = min(len(interfaces), usable_cores())
        # A pipe may make its interface wait, and the clock then reports to readers what is
        # processed.
        is_plain = all(each.source.size_bytes is not None for each in interfaces)
        is_threaded = may_run_ahead and threads > 1 and is_plain
        self._pool = ThreadPoolExecutor(threads, "replay") if is_threaded else None

    def __enter__(self) -> Self:
        """Return this; the threads end with the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    @property
    def part_bytes(self) -> int:
        """Bytes of input for which a step should last.

        0 without threads, which need no long steps.
        """
        return 0 if self._pool is None else PART_BYTES

    def advance(
        self,
        interfaces: Sequence[TraceInterface],
        until_ns: int,
        is_stopped: Callable[[], bool],
        before_fetch: Callable[[TraceInterface], None],
    ) -> None:
        """Advance each of ``interfaces`` to ``until_ns``; see ``TraceInterface.advance``.

        In threads, each stops after ``PART_BYTES`` even if it has not come so far.

        Raises:
            CaptureError: a source failed in a way that ends the replay.
            StreamError: the log cannot be written.
        """
        if self._pool is None:
            for each in interfaces:
                each.advance(until_ns, is_stopped, before_fetch)
            return
        working = [
            self._pool.submit(each.advance, until_ns, is_stopped, _wait_on, PART_BYTES)
            for each in interfaces
            if each.head_ns < until_ns
        ]
        wait(working)
        for done in working:
            done.result()


def _wait_on(_interface: TraceInterface) -> None:
    """Files have packets at once, or as soon as they are decompressed."""
