"""How far a capture has come."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a capture has come.

    Attributes:
        packets: processed so far.
        input_bytes: read so far.
        size_bytes: of the whole input; None if unknown.
        clock_ns: the time that the trace or the clock has reached.
        dropped: packets that the kernel lost on live interfaces.
    """

    packets: int
    input_bytes: int
    size_bytes: int | None
    clock_ns: int
    dropped: int = 0
