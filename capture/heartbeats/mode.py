"""When heartbeats are sent."""

from __future__ import annotations

from enum import StrEnum


class HeartbeatMode(StrEnum):
    """When heartbeats are sent; how soon answers come depends on it, and never what they say.

    * periodic: at every multiple of the interval, with the time of the clock.
    * on-demand: when somebody waits: an operator that asks, or the capture itself, with rows or groups to put out.
    * both: either.
    * off: no heartbeats of time. A stream tells what its own tuples tell, at multiples of the interval that these
      pass; a silent one tells nothing until its end.
    """

    PERIODIC = "periodic"
    ON_DEMAND = "on-demand"
    BOTH = "both"
    OFF = "off"

    @property
    def is_periodic(self) -> bool:
        """Whether time alone makes heartbeats."""
        return self in (HeartbeatMode.PERIODIC, HeartbeatMode.BOTH)

    @property
    def is_on_demand(self) -> bool:
        """Whether readers may ask for heartbeats."""
        return self in (HeartbeatMode.ON_DEMAND, HeartbeatMode.BOTH)
