"""Where the log of an input is served: at a fixed address, or where an agent serves it now."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from gscope.capture.log.agent.client import AgentClient, ClockReading
from gscope.capture.log.agent.messages import ENDED, FAILED, SERVING
from gscope.capture.log.remote.address import MAX_PORT, LogAddress, TcpAddress
from gscope.errors import DisconnectedError, StreamError

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_S = 0.25
"""Seconds between inquiries whether a capture serves already."""

STARTS_S = 240.0
"""Seconds after which a capture that does not start is reported; the agent gives it up before."""

CLOCK_S = 2.0
"""Seconds between readings of an agent's clock, which also keep its capture alive."""

CLOCK_READINGS = 16
"""The readings of which the one with the least error counts."""

DRIFT = 100e-6
"""How much clocks may drift apart, in seconds a second: twice what crystals do."""


class Endpoint(Protocol):
    """What an input's thread connects to."""

    @property
    def address(self) -> LogAddress:
        """The address that the user gave, for reports."""

    def locate(
        self,
        is_stopped: threading.Event,
        *,
        is_known: bool,
        on_starting: Callable[[], object],
    ) -> LogAddress | None:
        """Return where the log is served now; None if all of it was served.

        Args:
            is_stopped: set to give up.
            is_known: whether rows of it have been received.
            on_starting: called again and again while the input answers, but does not serve yet.

        Raises:
            StreamError: it is refused, and would be again.
            DisconnectedError: it is not served now.
        """

    def start(self) -> None:
        """Begin what goes on beside reading."""

    def stop(self) -> None:
        """End that."""

    def release(self) -> None:
        """Report that the log is not needed any more, if anyone wants to know."""

    def clock(self) -> ClockReading | None:
        """Return how far the clock of the input is ahead; None if that is unknown."""


class FixedEndpoint:
    """A sensor or a relay, whose log is served at ``address``."""

    def __init__(self, address: LogAddress) -> None:
        self.address = address

    def locate(
        self,
        _is_stopped: threading.Event,
        *,
        is_known: bool,  # noqa: ARG002
        on_starting: Callable[[], object],  # noqa: ARG002
    ) -> LogAddress | None:
        """Return the address."""
        return self.address

    def start(self) -> None:
        """Begin nothing."""

    def stop(self) -> None:
        """End nothing."""

    def release(self) -> None:
        """Report nothing: a sensor captures whether or not it is read."""

    def clock(self) -> None:
        """Return None."""
        return


class AgentEndpoint:
    """An agent at ``address``, which is asked to capture, and serves the log at another port.

    Args:
        address: where the agent listens.
        capture: the name of the capture.
        request: see ``CaptureRequest``, as an object of JSON.
    """

    def __init__(self, address: LogAddress, capture: str, request: object) -> None:
        self.address = address
        self._capture = capture
        self._request = request
        self._is_stopped = threading.Event()
        self._clock = OffsetEstimate()
        self._thread: threading.Thread | None = None

    def locate(
        self,
        is_stopped: threading.Event,
        *,
        is_known: bool,
        on_starting: Callable[[], object],
    ) -> LogAddress | None:
        """Ask for the capture until it serves; return where."""
        with AgentClient(self.address) as agent:
            for _ in range(int(STARTS_S / POLL_S)):
                state = agent.begin(self._capture, self._request, is_known=is_known)
                if state.state == SERVING:
                    return self._at(state.port)
                if state.state == ENDED:
                    return None
                if state.state == FAILED:
                    message = f"{self.address} cannot capture: {state.reason}"
                    raise (DisconnectedError if is_known else StreamError)(message)
                on_starting()
                if is_stopped.wait(POLL_S):
                    break
        message = f"{self.address} has not started to capture"
        raise DisconnectedError(message)

    def start(self) -> None:
        """Begin to read the agent's clock."""
        self._thread = threading.Thread(target=self._follow_clock, daemon=True, name="agent clock")
        self._thread.start()

    def stop(self) -> None:
        """End that."""
        self._is_stopped.set()

    def release(self) -> None:
        """Let the agent end the capture; one that does not answer ends it after its own time."""
        with suppress(StreamError), AgentClient(self.address) as agent:
            agent.end(self._capture)

    def clock(self) -> ClockReading | None:
        """Return how far the clock of the agent is ahead; None before the first reading."""
        return self._clock.best()

    def _at(self, port: int) -> LogAddress:
        place = self.address.place
        if not isinstance(place, TcpAddress) or not 0 < port <= MAX_PORT:
            message = f"{self.address} serves at an invalid port {port}"
            raise StreamError(message)
        return LogAddress(
            TcpAddress(place.host, port), self.address.token, self.address.certificates
        )

    def _follow_clock(self) -> None:
        while not self._is_stopped.is_set():
            with suppress(StreamError), AgentClient(self.address) as agent:
                while not self._is_stopped.wait(CLOCK_S):
                    self._clock.add(agent.read_clock(self._capture))
            self._is_stopped.wait(CLOCK_S)


class OffsetEstimate:
    """The best of the latest readings of a clock; for use by several threads.

    A reading's error grows with its age, since the clocks drift apart. So the estimate is the one
    with the least error now.

    Args:
        monotonic_ns: a clock in nanoseconds.
    """

    def __init__(self, monotonic_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._monotonic_ns = monotonic_ns
        self._lock = threading.Lock()
        self._readings: list[tuple[int, ClockReading]] = []

    def add(self, reading: ClockReading) -> None:
        """Take a reading that was made just now.

        Readings that contradict it are dropped: a clock has been set since.
        """
        now_ns = self._monotonic_ns()
        with self._lock:
            self._readings = [
                (at_ns, each)
                for at_ns, each in self._readings[1 - CLOCK_READINGS :]
                if abs(each.offset_ns - reading.offset_ns)
                <= _aged(each, now_ns - at_ns) + reading.error_ns
            ]
            self._readings.append((now_ns, reading))

    def best(self) -> ClockReading | None:
        """Return the estimate with its error as of now; None before the first reading."""
        now_ns = self._monotonic_ns()
        with self._lock:
            aged = [
                ClockReading(each.offset_ns, _aged(each, now_ns - at_ns))
                for at_ns, each in self._readings
            ]
        return min(aged, key=lambda each: each.error_ns, default=None)


def _aged(reading: ClockReading, age_ns: int) -> int:
    return reading.error_ns + int(age_ns * DRIFT)
