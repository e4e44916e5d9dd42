"""The mode that decides when heartbeats are sent."""

from __future__ import annotations

from enum import StrEnum


class HeartbeatMode(StrEnum):
    """When heartbeats are sent. Latency of answers depends on it, their content does not.

    * periodic: at every multiple of the interval, with the time of the clock.
    * on-demand: when an operator asks for one, or when the capture has rows or groups to emit.
    * both: in either case.
    * off: time alone sends no heartbeats. A stream promises what its own tuples show, at multiples
      of the interval that they pass; a silent stream promises nothing until its end.
    """

    PERIODIC = "periodic"
    ON_DEMAND = "on-demand"
    BOTH = "both"
    OFF = "off"

    @property
    def is_periodic(self) -> bool:
        """Whether time alone causes heartbeats."""
        return self in (HeartbeatMode.PERIODIC, HeartbeatMode.BOTH)

    @property
    def is_on_demand(self) -> bool:
        """Whether readers may ask for heartbeats."""
        return self in (HeartbeatMode.ON_DEMAND, HeartbeatMode.BOTH)
