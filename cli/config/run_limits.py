"""The limits of a run: how fast and how long it captures."""

from __future__ import annotations

from gscope.records import dataclass


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How fast and how long a run captures.

    Attributes:
        speed: of a replay, as a multiple of the speed of the trace; None: as fast as possible.
        packets: the run ends after this many packets; None: no limit.
        duration_ns: a live run ends after this time; None: no limit.
    """

    speed: float | None = None
    packets: int | None = None
    duration_ns: int | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether a live run ends by itself."""
        return self.packets is not None or self.duration_ns is not None
