"""The source of an interface that turned out to have no packets."""

from __future__ import annotations

from gscope.capture.sources.base import NO_RING, InputState, RingUse, SourceStats


class NoPackets:
    """An input without packets, at its end from the beginning; see ``CaptureSource``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.device = name
        self.stats = SourceStats()
        self.size_bytes: int | None = 0
        self.damage: list[str] = []

    def open(self) -> None:
        """Do nothing."""

    def next_block(self) -> None:
        """Return None, the end of input."""

    def is_ready(self, timeout_s: float) -> bool:  # noqa: ARG002  # nothing to wait for
        """Return True: the end of input is always there."""
        return True

    def state(self) -> InputState:
        """See ``PacketSource``."""
        return InputState.ENDED

    def ring_use(self) -> RingUse:
        """See ``PacketSource``."""
        return NO_RING

    def close(self) -> None:
        """Do nothing."""
