"""The captures that an agent's control process knows: what was requested, and how each stands.

The control process cannot start anything. It passes requests to the agent, which has the rights to
capture, and repeats what the agent says of them.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from typing import TYPE_CHECKING, Any

from gscope.capture.log.agent.messages import (
    CAPTURE_NAME,
    ENDED,
    FAILED,
    STARTING,
    CaptureRequest,
    CaptureState,
    ensure_names,
)
from gscope.errors import StreamError
from gscope.queries.streams.process_events import (
    CaptureDismissed,
    CaptureRequested,
    CaptureWanted,
)
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.streams.process_events import ProcessEvent

MAX_CAPTURES = 8
"""Captures at the same time; each is a capture daemon with rings and tables of its own."""

MAX_REMEMBERED = 64
"""The same, with captures that have ended and whose hosts may still ask for them."""

WANTED_S = 1.0
"""Seconds between reports that a capture is still wanted."""

RETRY_S = 5.0
"""Seconds after a failure before a capture that is requested again is started again."""


def request_digest(request: object) -> str:
    """Return a digest by which the board distinguishes requests."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


@dataclass(slots=True)
class _Entry:
    digest: str
    state: CaptureState
    wanted_s: float = 0.0
    failed_s: float = 0.0


class CaptureBoard:
    """The captures by name; for use by all threads.

    Args:
        allowed: the names of the interfaces that the agent allows.
        send: takes events for the agent.
        monotonic: a clock in seconds.
    """

    def __init__(
        self,
        allowed: tuple[str, ...],
        send: Callable[[ProcessEvent], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._allowed = allowed
        self._send = send
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}

    def begin(
        self, name: object, request: object, *, is_known: bool, is_recording: bool = False
    ) -> CaptureState:
        """Return how a capture stands, after passing on the request if it is new.

        A request to record does not count as reading: the agent keeps the rows until a run asks.

        Raises:
            StreamError: the request is invalid, or there are too many captures.
        """
        capture = _name(name)
        digest = request_digest(request)
        with self._lock:
            entry = self._entries.get(capture)
            if entry is None:
                asked = _checked(request)
                event = CaptureRequested(capture, asked, is_known, is_recording)
                entry = self._added(event, digest)
            elif entry.digest != digest:
                message = f"the capture {capture!r} was requested with other queries or settings"
                raise StreamError(message)
            elif entry.state.state == FAILED and self._monotonic() >= entry.failed_s + RETRY_S:
                asked = _checked(request)
                return self._retried(
                    entry, CaptureRequested(capture, asked, is_known, is_recording)
                )
            if not is_recording:
                self._want(capture, entry)
            return entry.state

    def want(self, name: object) -> None:
        """Note that a capture is still wanted; one that is unknown is passed over."""
        capture = _name(name)
        with self._lock:
            if (entry := self._entries.get(capture)) is not None:
                self._want(capture, entry)

    def dismiss(self, name: object) -> None:
        """Pass on that a capture is not needed any more; harmless when repeated."""
        capture = _name(name)
        with self._lock:
            if self._entries.pop(capture, None) is not None:
                self._send(CaptureDismissed(capture))

    def on_state(self, capture: str, digest: str, state: CaptureState | None) -> None:
        """Note what the agent says of a capture; None: it has forgotten it."""
        with self._lock:
            entry = self._entries.get(capture)
            if state is None:
                self._entries.pop(capture, None)
            elif entry is None:
                self._entries[capture] = _Entry(digest, state)
            elif entry.digest == digest:
                entry.state = state
                entry.failed_s = self._monotonic()

    def _added(self, event: CaptureRequested, digest: str) -> _Entry:
        """Check a request that is new, and pass it on."""
        checked = CaptureRequest.from_object(event.request)
        ensure_names(checked.own_interfaces, self._allowed)
        running = sum(each.state.state != ENDED for each in self._entries.values())
        if running >= MAX_CAPTURES or len(self._entries) >= MAX_REMEMBERED:
            message = f"this agent runs {running} captures already, and takes no further one"
            raise StreamError(message)
        entry = self._entries[event.capture] = _Entry(digest, CaptureState(STARTING))
        self._send(event)
        return entry

    def _retried(self, entry: _Entry, event: CaptureRequested) -> CaptureState:
        """Ask the agent to start a capture again that has failed; return why it had."""
        failed, entry.failed_s = entry.state, self._monotonic()
        self._send(event)
        return failed

    def _want(self, capture: str, entry: _Entry) -> None:
        now_s = self._monotonic()
        if now_s >= entry.wanted_s + WANTED_S:
            entry.wanted_s = now_s
            self._send(CaptureWanted(capture))


def _checked(request: object) -> dict[str, Any]:
    if not isinstance(request, dict):
        message = "invalid request: expected an object of JSON"
        raise StreamError(message)
    return request


def _name(name: object) -> str:
    if not isinstance(name, str) or not CAPTURE_NAME.fullmatch(name):
        message = f"invalid name of a capture: {name!r:.120}"
        raise StreamError(message)
    return name
