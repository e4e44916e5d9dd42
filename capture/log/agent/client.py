"""Client of an agent: what it offers, captures on request, and its clock."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from gscope.capture.log.agent.messages import CaptureState, Offer, decoded
from gscope.capture.log.remote.connection import RemoteConnection
from gscope.errors import StreamError
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

CLOCK_CALL_S = 5.0
"""Seconds after which an inquiry of the clock counts as unanswered."""


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The clock of another host, once.

    Attributes:
        offset_ns: how far it is ahead of the clock here.
        error_ns: by how much that may be wrong: half of the time that the inquiry took.
    """

    offset_ns: int
    error_ns: int


class AgentClient(RemoteConnection):
    """A connection to the control port of an agent; a context manager."""

    def offer(self) -> Offer:
        """Return what the agent captures for others.

        Raises:
            StreamError: the agent refused, or is of another version.
            DisconnectedError: it does not answer.
        """
        found: Offer = decoded(Offer, self.act("offer", {}), str(self.address))
        return found

    def begin(
        self, capture: str, request: object, *, is_known: bool, is_recording: bool = False
    ) -> CaptureState:
        """Ask for a capture, again and again until it serves; return how it stands.

        Args:
            capture: its name.
            request: see ``CaptureRequest``, as an object of JSON.
            is_known: whether rows of it have been received before.
            is_recording: whether it is to be kept for a run that reads it later.

        Raises:
            StreamError: the agent refused, or is of another version.
            DisconnectedError: it does not answer.
        """
        fields = {
            "capture": capture,
            "request": request,
            "is_known": is_known,
            "is_recording": is_recording,
        }
        found: CaptureState = decoded(CaptureState, self.act("begin", fields), str(self.address))
        return found

    def end(self, capture: str) -> None:
        """Report that a capture is needed no longer.

        Raises:
            StreamError: the agent refused.
            DisconnectedError: it does not answer.
        """
        self.act("end", {"capture": capture})

    def read_clock(self, capture: str, wall_ns: Callable[[], int] = time.time_ns) -> ClockReading:
        """Return how far the clock of the agent is ahead; this also keeps ``capture`` alive.

        The agent reads its clock at some moment between request and reply. So with half of the time
        between them as error, the offset holds however long each way took (Cristian, 1989).

        Raises:
            StreamError: the agent refused, or sent no time.
            DisconnectedError: it does not answer.
        """
        began_ns, began = wall_ns(), time.monotonic_ns()
        body = self.act("clock", {"capture": capture}, CLOCK_CALL_S)
        took_ns = time.monotonic_ns() - began
        try:
            there_ns = json.loads(body)["time_ns"]
            is_time = type(there_ns) is int and MIN_TIME_NS < there_ns <= MAX_TIME_NS
        except (ValueError, TypeError, KeyError, RecursionError):
            is_time = False
        if not is_time:
            message = f"{self.address} sent an invalid time"
            raise StreamError(message)
        return ClockReading(there_ns - began_ns - took_ns // 2, -(-took_ns // 2))
