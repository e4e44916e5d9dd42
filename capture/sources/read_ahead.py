"""A bounded ring of blocks that a reader thread fills ahead of the consumer."""

from __future__ import annotations

import dataclasses
import threading
from collections import deque
from typing import TYPE_CHECKING

from gscope.capture.sources.base import InputState, RingUse, SourceStats

if TYPE_CHECKING:
    from gscope.capture.sources.base import BlockSource
    from gscope.capture.sources.block import Block

DEFAULT_SLOTS = 4
"""Blocks in a ring: one is processed, one is filled, and two absorb jitter."""


class RingSource:
    """A capture source that reads another one ahead, in a thread of its own; see ``CaptureSource``.

    Blocks are allocated when they are first needed and then reused: a small file allocates one or
    two. ``stats`` count what was handed out; ``damage`` is the other source's own and may be ahead
    of that.

    Args:
        source: what fills the blocks; this object alone may use it.
        slots: blocks in all, including the one that is handed out; at least 2.
    """

    def __init__(self, source: BlockSource, slots: int = DEFAULT_SLOTS) -> None:
        self.name = source.name
        self.device = source.device
        self.stats = SourceStats()
        self.size_bytes = source.size_bytes
        self.damage = source.damage
        self.slots = max(slots, 2)
        self._source = source
        self._free: list[Block] = []
        self._full: deque[tuple[Block, SourceStats]] = deque()
        self._current: Block | None = None
        self._made = 0
        self._failure: BaseException | None = None
        self._is_read = False
        self._is_ended = False
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Open the source and start reading; see ``PacketSource``."""
        self._source.open()
        self.start()

    def start(self) -> None:
        """Start reading a source that is already open."""
        self.size_bytes = self._source.size_bytes
        self._thread = threading.Thread(target=self._run, name=f"read {self.name}", daemon=True)
        self._thread.start()

    def is_ready(self, timeout_s: float) -> bool:
        """See ``CaptureSource``."""
        with self._changed:
            return self._changed.wait_for(self._has_something, timeout_s)

    def next_block(self) -> Block | None:
        """See ``CaptureSource``.

        Raises:
            Exception: what the source raised, after the blocks that precede it.
        """
        with self._changed:
            if self._current is not None:
                self._free.append(self._current)
                self._current = None
                self._changed.notify_all()
            self._changed.wait_for(self._has_something)
            if self._full and not self._is_closed:
                self._current, self.stats = self._full.popleft()
                return self._current
            if self._failure is not None and not self._is_closed:
                raise self._failure
            self._is_ended = True
            return None

    def state(self) -> InputState:
        """See ``PacketSource``."""
        return InputState.ENDED if self._is_ended else InputState.READING

    def ring_use(self) -> RingUse:
        """See ``PacketSource``; the size of the blocks depends on the input."""
        return RingUse(0, len(self._full) / self.slots)

    def close(self) -> None:
        """End the thread, wherever it waits, and close the source; see ``PacketSource``."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._source.interrupt()
            self._thread.join()
            self._thread = None
        self._source.close()
        self._free.clear()
        self._full.clear()
        self._current = None

    def _has_something(self) -> bool:
        return bool(self._full) or self._is_read or self._is_closed

    def _run(self) -> None:
        try:
            while (block := self._next_free()) is not None:
                if not self._source.fill(block):
                    break
                with self._changed:
                    self._full.append((block, dataclasses.replace(self._source.stats)))
                    self._changed.notify_all()
        except BaseException as error:
            self._failure = error
        finally:
            with self._changed:
                self._is_read = True
                self._changed.notify_all()

    def _next_free(self) -> Block | None:
        """Return a block to be filled, None once the ring is closed; wait for the consumer."""
        with self._changed:
            self._changed.wait_for(lambda: self._free or self._made < self.slots or self._is_closed)
            if self._is_closed:
                return None
            if self._free:
                return self._free.pop()
            self._made += 1
        return self._source.new_block()
