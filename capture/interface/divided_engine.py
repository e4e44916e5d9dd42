"""The LFTAs of one interface in parts, which threads run over the same packets side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

from gscope.queries.int64 import MAX_TIME_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.capture.lfta.counters import InterfaceCounters, LftaCounters
    from gscope.capture.lfta.runtime import LftaRuntime
    from gscope.capture.sources.block import Block
    from gscope.queries.streams.messages import Punctuation

_R = TypeVar("_R")


class DividedEngine:
    """Runs LFTAs in parts, each in a thread; see ``LftaEngine``.

    Each part decodes and counts all packets, and has LFTAs of its own: parts write nothing in
    common. The calling thread runs the first part, and waits for the others. Batches are emitted by
    all threads.

    Args:
        parts: runtimes that neither sample nor save packets, at least two.
        lftas: the names of all their LFTAs, in the order of the program, which streams keep.
    """

    def __init__(self, parts: Sequence[LftaRuntime], lftas: Sequence[str]) -> None:
        self._parts = list(parts)
        of_lfta = {lfta: part for part in parts for lfta in part.lftas}
        self._of_lfta = {lfta: of_lfta[lfta] for lfta in lftas}
        self._pool: ThreadPoolExecutor | None = ThreadPoolExecutor(len(parts) - 1, "lftas")

    @property
    def bound_ns(self) -> int:
        """See ``LftaEngine``."""
        return self._parts[0].bound_ns

    def process(self, block: Block, start: int, until_ns: int = MAX_TIME_NS) -> int:
        """See ``LftaEngine``."""
        # Where a part stops depends on the times of packets alone.
        return self._each(lambda part: part.process(block, start, until_ns))[0]

    def heartbeat(self, clock_ns: int, skew_ns: int = 0) -> dict[str, tuple[Punctuation, ...]]:
        """See ``LftaEngine``."""
        promises = self._each(lambda part: part.heartbeat(clock_ns, skew_ns))
        found = {lfta: promise for each in promises for lfta, promise in each.items()}
        return {lfta: found[lfta] for lfta in self._of_lfta}

    def finish(self) -> None:
        """See ``LftaEngine``; ends the threads, so that what follows is done by the calling one."""
        self._each(lambda part: part.finish())
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def set_threshold(self, lfta: str, threshold: int) -> None:
        """Refuse it: a packet that LFTAs of several parts leave out would be counted by each.

        Raises:
            ValueError: always.
        """
        message = (
            f"{lfta} runs in a part, which cannot leave out packets by the threshold {threshold}"
        )
        raise ValueError(message)

    def begin_lane(self, lane: int) -> None:
        """See ``LftaEngine``."""
        for part in self._parts:
            part.begin_lane(lane)

    @property
    def interface_counters(self) -> InterfaceCounters:
        """See ``LftaEngine``."""
        return self._parts[0].interface_counters

    def lfta_counters(self, lfta: str) -> LftaCounters:
        """See ``LftaEngine``."""
        return self._of_lfta[lfta].lfta_counters(lfta)

    def _each(self, work: Callable[[LftaRuntime], _R]) -> list[_R]:
        """Return the result of ``work`` for each part, in order, or raise what it raises."""
        first, *others = self._parts
        if self._pool is None:
            return [work(part) for part in self._parts]
        working = [self._pool.submit(work, part) for part in others]
        try:
            own = work(first)
        finally:
            # Nothing may go on with packets or rows after this call.
            wait(working)
        return [own, *(done.result() for done in working)]
