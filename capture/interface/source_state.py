"""The state of the packet source of an interface."""

from __future__ import annotations

from gscope.records import dataclass


@dataclass(frozen=True, slots=True)
class SourceState:
    """The state of the packet source of an interface.

    Attributes:
        device: what is read: the name of a device, or files.
        state: ``up``, ``down``, ``gone``, ``reading``, ``ended``.
        received_bytes: bytes received, as they were on the wire.
        frozen_total: number of times the ring became full.
        interruptions_total: number of times the interface went down or vanished.
        ring_bytes: size of the capture ring; 0 if there is none.
        ring_occupancy: share of the ring in use, 0 to 1.
        skew_ns: largest accepted delay of a packet; None while it is being found.
        largest_lag_ns: longest time from a packet's timestamp to its arrival; None for files.
        last_packet_ns: timestamp of the latest packet; None if there was none.
        clock_ns: time of the last heartbeat; None if there was none.
        failure: reason why this interface alone stopped capturing; "" while it captures.
    """

    device: str
    state: str
    received_bytes: int
    frozen_total: int
    interruptions_total: int
    ring_bytes: int
    ring_occupancy: float
    skew_ns: int | None
    largest_lag_ns: int | None
    last_packet_ns: int | None
    clock_ns: int | None
    failure: str = ""
