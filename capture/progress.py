"""The progress of a capture."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a capture.

    Attributes:
        packets: number of packets processed.
        input_bytes: bytes of input read; 0 for live interfaces.
        size_bytes: size of the whole input; None if unknown.
        clock_ns: time that the trace clock, or the clock of a live interface, has reached.
        dropped: packets that the kernel dropped on live interfaces.
    """

    packets: int
    input_bytes: int
    size_bytes: int | None
    clock_ns: int
    dropped: int = 0
