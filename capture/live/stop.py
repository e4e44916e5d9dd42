"""When live capture ends: somebody asks for it, or a limit of packets or time is reached."""

from __future__ import annotations

import threading

from gscope.queries.int64 import MAX_TIME_NS


class LiveStop:
    """Ends live capture, from any thread.

    Packets stamped before the moment at which it was first noticed are still processed, on every interface.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self._lock = threading.Lock()
        self._moment_ns: int | None = None

    def request(self) -> None:
        """Stop now."""
        self.event.set()

    def moment_ns(self, now_ns: int) -> int:
        """When the stop was first noticed, which is now if it was not before."""
        with self._lock:
            if self._moment_ns is None:
                self._moment_ns = now_ns
            return self._moment_ns


class CaptureLimit:
    """Ends live capture after so many packets of all interfaces, or so long.

    Args:
        stop: requested when the limit is reached.
        packets: None for no limit.
        duration_ns: None for no limit.
        spent: packets that came before.
    """

    def __init__(
        self, stop: LiveStop, packets: int | None, duration_ns: int | None, spent: int = 0
    ) -> None:
        self._stop = stop
        self._left = None if packets is None else max(0, packets - spent)
        if self._left == 0:
            stop.request()
        self._duration_ns = duration_ns
        self._lock = threading.Lock()

    @property
    def is_spent(self) -> bool:
        """Whether no more packets are wanted."""
        return self._left == 0

    def admit(self, packets: int) -> int:
        """How many of the next ``packets`` are wanted."""
        if self._left is None:
            return packets
        with self._lock:
            wanted = min(packets, self._left)
            self._left -= wanted
            if self._left == 0:
                self._stop.request()
            return wanted

    def left_ns(self, since_start_ns: int) -> int:
        """How much time is left; none requests the stop."""
        if self._duration_ns is None:
            return MAX_TIME_NS
        left = self._duration_ns - since_start_ns
        if left <= 0:
            self._stop.request()
        return max(0, left)
