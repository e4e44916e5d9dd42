"""The end of a live capture: on request, or when a limit of packets or time is reached."""

from __future__ import annotations

import threading

from gscope.queries.int64 import MAX_TIME_NS


class LiveStop:
    """A switch that ends a live capture, for use by any thread.

    Packets stamped before the moment at which a thread first noticed the stop are still processed,
    on every interface.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self._lock = threading.Lock()
        self._moment_ns: int | None = None

    def request(self) -> None:
        """Stop the capture."""
        self.event.set()

    def moment_ns(self, now_ns: int) -> int:
        """Return the time at which the stop was first noticed: ``now_ns`` for the first caller."""
        with self._lock:
            if self._moment_ns is None:
                self._moment_ns = now_ns
            return self._moment_ns


class CaptureLimit:
    """The limits after which a live capture ends: a number of packets, a duration.

    Args:
        stop: the stop to request when a limit is reached.
        packets: packets to process, over all interfaces and daemons of the run; None for no limit.
        duration_ns: duration of the capture; None for no limit.
        spent: packets that earlier daemons of the run processed.
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
        """Whether the limit of packets is reached."""
        return self._left == 0

    def admit(self, packets: int) -> int:
        """Return how many of the next ``packets`` are within the limit, and count them."""
        if self._left is None:
            return packets
        with self._lock:
            wanted = min(packets, self._left)
            self._left -= wanted
            if self._left == 0:
                self._stop.request()
            return wanted

    def left_ns(self, since_start_ns: int) -> int:
        """Return the time left, in nanoseconds; request the stop when none is left."""
        if self._duration_ns is None:
            return MAX_TIME_NS
        left = self._duration_ns - since_start_ns
        if left <= 0:
            self._stop.request()
        return max(0, left)
