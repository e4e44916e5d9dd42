"""What a relay knows of one input.

That is whether it answers, how far it is, what came and what was lost.
"""

from __future__ import annotations

import time
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.capture.log.agent.client import ClockReading


class InputState(StrEnum):
    """The state of an input.

    Attributes:
        CONNECTING: no connection was made yet.
        UP: it is connected, and has sent something within the timeout.
        FAILED: nothing has come for longer than the timeout.
        REFUSED: one of the two sides refuses the other.
        ABSENT: nothing has come for so much longer that it holds nothing back any more.
        ENDED: all its streams have ended.
    """

    CONNECTING = "connecting"
    UP = "up"
    FAILED = "failed"
    REFUSED = "refused"
    ABSENT = "absent"
    ENDED = "ended"


@dataclass(slots=True)
class InputStatus:
    """One input of a relay; for the relay's thread.

    Attributes:
        name: its name.
        address: where its log is served.
        timeout_ns: silence after which it is reported.
        absent_after_ns: silence after which it is left out; None for never.
        monotonic_ns: the clock of silence.
        state: see ``InputState``.
        reason: why it is not connected; "" if it is.
        is_connected: whether a connection is open.
        last_heartbeat_ns: clock of its last heartbeat; None for none.
        heard_ns: real time when something last came; None for never.
        connects_total: connections made.
        absences_total: times that it was left out.
        skew_ns: how far its clock may be off before that is reported; 0 for never.
        clock: how far its clock is ahead; None if that is unknown.
    """

    name: str
    address: str
    timeout_ns: int
    absent_after_ns: int | None
    monotonic_ns: Callable[[], int] = time.monotonic_ns
    state: InputState = InputState.CONNECTING
    reason: str = ""
    is_connected: bool = False
    last_heartbeat_ns: int | None = None
    heard_ns: int | None = None
    connects_total: int = 0
    absences_total: int = 0
    skew_ns: int = 0
    clock: ClockReading | None = None
    _is_clock_off: bool = False
    _heard_at_ns: int = field(init=False)
    _tried_at_ns: int = field(init=False)

    def __post_init__(self) -> None:
        self._heard_at_ns = self._tried_at_ns = self.monotonic_ns()

    @property
    def silent_ns(self) -> int:
        """For how long nothing has come although it was read, in nanoseconds."""
        return self.monotonic_ns() - self._heard_at_ns

    def on_starting(self) -> None:
        """Note that the input answers, and is about to capture: it is not silent."""
        self._heard_at_ns = self.monotonic_ns()

    def on_connected(self) -> None:
        """Note a new connection."""
        self.is_connected = True
        self.reason = ""
        self.connects_total += 1
        self._tried_at_ns = self.monotonic_ns()

    def on_received(self, clock_ns: int | None) -> str | None:
        """Note that something came; return a phrase to report if that is new.

        Args:
            clock_ns: clock of the heartbeat that came last; None if none came.
        """
        self._heard_at_ns = self._tried_at_ns = self.monotonic_ns()
        self.heard_ns = time.time_ns()
        if clock_ns is not None:
            self.last_heartbeat_ns = max(clock_ns, self.last_heartbeat_ns or clock_ns)
        before, self.state = self.state, InputState.UP
        if before in (InputState.FAILED, InputState.REFUSED, InputState.ABSENT):
            return "answers again"
        return None

    def on_unread(self, unread_ns: int) -> None:
        """Note that the input was not read for ``unread_ns``, which does not count as silence."""
        now_ns = self.monotonic_ns()
        self._heard_at_ns = min(now_ns, self._heard_at_ns + unread_ns)
        self._tried_at_ns = min(now_ns, self._tried_at_ns + unread_ns)

    def on_disconnected(self, reason: str, *, is_refused: bool) -> str | None:
        """Note that the connection is lost; return a phrase to report if that is new."""
        self.is_connected = False
        is_new = reason != self.reason
        self.reason = reason
        if is_refused and self.state not in (InputState.ABSENT, InputState.ENDED):
            self.state = InputState.REFUSED
            return reason if is_new else None
        return None

    def look(self) -> str | None:
        """Judge the silence; return a phrase to report if the state has changed."""
        if self.state is InputState.ENDED:
            return None
        silent_ns = self.silent_ns
        if self.absent_after_ns is not None and silent_ns >= self.absent_after_ns:
            if self.state is not InputState.ABSENT:
                self.state = InputState.ABSENT
                self.absences_total += 1
                return (
                    f"silent for {silent_ns / 1e9:.0f} s; answers continue without it, and what it "
                    "still sends of the past will be late"
                )
        elif silent_ns >= self.timeout_ns and self.state in (
            InputState.CONNECTING,
            InputState.UP,
        ):
            self.state = InputState.FAILED
            why = f" ({self.reason})" if self.reason else ""
            return f"silent for {silent_ns / 1e9:.0f} s{why}; answers wait for it"
        return None

    def on_clock(self, clock: ClockReading | None) -> str | None:
        """Note how far the clock of the input is ahead; return a phrase to report if that is new.

        It counts as off if it is, whatever the error of the reading.
        """
        self.clock = clock
        if clock is None or not self.skew_ns:
            return None
        was_off = self._is_clock_off
        self._is_clock_off = abs(clock.offset_ns) - clock.error_ns > self.skew_ns
        if self._is_clock_off == was_off:
            return None
        if was_off:
            return "its clock is right again"
        side = "ahead of" if clock.offset_ns > 0 else "behind"
        return (
            f"its clock is {abs(clock.offset_ns) / 1e9:.3f} s (± {clock.error_ns / 1e9:.3f} s) "
            f"{side} the clock here, more than the skew of {self.skew_ns / 1e9:g} s; synchronize "
            "both"
        )

    @property
    def is_stuck(self) -> bool:
        """Whether the connection should be given up: it is open, but nothing comes."""
        return self.is_connected and self.monotonic_ns() - self._tried_at_ns >= self.timeout_ns

    def on_retried(self) -> None:
        """Note that a stuck connection was given up."""
        self._tried_at_ns = self.monotonic_ns()

    def fields(self) -> dict[str, Any]:
        """Return it as plain values for the statistics."""
        return {
            "name": self.name,
            "address": self.address,
            "state": str(self.state),
            "reason": self.reason,
            "last_heartbeat_ns": self.last_heartbeat_ns,
            "heard_ns": self.heard_ns,
            "silent_ns": self.silent_ns,
            "connects_total": self.connects_total,
            "absences_total": self.absences_total,
            "clock_offset_ns": None if self.clock is None else self.clock.offset_ns,
            "clock_error_ns": None if self.clock is None else self.clock.error_ns,
        }
