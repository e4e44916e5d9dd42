"""Demands of stream readers for promises, passed from the server's threads to capture threads."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gscope.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Wanted = dict[str, int]
"""Demanded bounds by column (see ``Punctuation``); {} demands what can be promised now."""


class Demands:
    """The pending demands on each stream of a run; for use by all threads.

    Demands on one stream are combined: the highest bounds count, and a heartbeat that promises them
    answers all.

    Args:
        streams: names of the streams of the run.
        is_served: whether heartbeats are sent on demand in this run.
    """

    def __init__(self, streams: Iterable[str], *, is_served: bool = True) -> None:
        self._streams = frozenset(streams)
        self._is_served = is_served
        self._wanted: dict[str, Wanted] = {}
        self._wakers: dict[str, Callable[[], None]] = {}
        self._lock = threading.Lock()

    def attach(self, streams: Iterable[str], wake: Callable[[], None]) -> None:
        """Call ``wake``, from any thread, whenever a demand on ``streams`` arrives."""
        with self._lock:
            self._wakers.update(dict.fromkeys(streams, wake))

    def ask(self, wanted: Mapping[str, Wanted]) -> None:
        """Demand that streams promise bounds as soon as they can.

        Raises:
            StreamError: a stream is unknown, or this run does not answer demands.
        """
        unknown = [stream for stream in wanted if stream not in self._streams]
        if unknown:
            message = f"unknown stream {unknown[0]!r}; available: {sorted(self._streams)}"
            raise StreamError(message)
        if not self._is_served:
            message = "this run does not send heartbeats on demand; see heartbeat.mode"
            raise StreamError(message)
        with self._lock:
            for stream, bounds in wanted.items():
                known = self._wanted.setdefault(stream, {})
                for column, bound in bounds.items():
                    known[column] = max(bound, known.get(column, bound))
            wakers = {self._wakers[stream] for stream in wanted if stream in self._wakers}
        for wake in wakers:
            wake()

    def take(self, streams: Iterable[str]) -> dict[str, Wanted]:
        """Remove and return the demands on ``streams``, which the caller has to answer."""
        if not self._wanted:
            return {}
        with self._lock:
            return {s: self._wanted.pop(s) for s in streams if s in self._wanted}
