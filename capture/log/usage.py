"""What the budget of a log may see of it, and do to it; see ``Usage`` in ``budget.py``."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Collection, Iterator, Mapping

    from gscope.capture.log.retained_messages import Ledger
    from gscope.capture.log.segments import SegmentFolder
    from gscope.queries.streams.messages import Batch


class LogUsage:
    """The part of a log that its budget and its server use."""

    _ledger: Ledger
    _segments: SegmentFolder
    _changed: threading.Condition
    _is_closed: bool

    @property
    def used_bytes(self) -> int:
        """Bytes of all retained segments."""
        return self._ledger.used_bytes

    @property
    def held_batches(self) -> int:
        """Number of retained segments."""
        return self._ledger.held_batches

    @property
    def begun(self) -> Mapping[str, int]:
        """The number of the first message that this process writes, by stream."""
        return self._ledger.begun

    @property
    def free_bytes(self) -> int:
        """Bytes that the log may still write to the disk."""
        return self._segments.free_bytes()

    @property
    def has_consumers(self) -> bool:
        """Whether segments are ever released."""
        return self._ledger.acknowledged.has_consumers

    def wait_for_room(self, used_bytes: int, timeout_s: float) -> bool:
        """Block until less than ``used_bytes`` are used; return False after the timeout."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closed or self._ledger.used_bytes < used_bytes, timeout_s
            )
            return self._ledger.used_bytes < used_bytes

    def sheddable(self) -> list[Batch]:
        """Return the batches that no consumer has leased, oldest first, spared streams last."""
        with self._changed:
            return list(self._sheddable())

    def shed_oldest(self) -> bool:
        """Replace the first of ``sheddable`` by a gap; return False if there is none."""
        with self._changed:
            oldest = next(self._sheddable(), None)
            if oldest is None:
                return False
            self._ledger.shed(oldest)
            self._changed.notify_all()
            return True

    def _sheddable(self) -> Iterator[Batch]:
        """Yield the batches that ``sheddable`` returns; for the thread that has the lock."""
        spared = self._spared_streams
        if not spared:
            return self._ledger.sheddable()
        others = [stream for stream in self._ledger.held if stream not in spared]
        first = self._ledger.sheddable(others) if others else iter(())
        return chain(first, self._ledger.sheddable(spared))

    @property
    def _spared_streams(self) -> Collection[str]:
        """Streams whose batches are shed only when no other batches can be shed."""
        return ()
