"""The source of an interface that turned out to have no packets."""

from __future__ import annotations

from gscope.capture.sources.base import SourceStats


class NoPackets:
    """An input without packets, from the beginning at its end; see ``PacketSource``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stats = SourceStats()
        self.size_bytes: int | None = 0
        self.damage: list[str] = []

    def open(self) -> None:
        """Nothing to open."""

    def next_block(self) -> None:
        """The end of input."""

    def close(self) -> None:
        """Nothing to close."""
