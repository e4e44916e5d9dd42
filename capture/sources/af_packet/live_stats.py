"""What a live source counts."""

from __future__ import annotations

from dataclasses import dataclass

from gscope.capture.sources.base import SourceStats


@dataclass(slots=True)
class LiveStats(SourceStats):
    """Counters of a live source.

    ``received_packets`` are those that passed the socket's filters; what these reject the kernel does not count.
    ``filtered_packets`` are the outgoing copies of loopback packets, ``dropped_packets`` found no room in
    the ring, ``frozen_total`` is how often the ring became full.

    Attributes:
        kernel_packets: packets the kernel counted: those received and those that still wait in the ring.
        hardware_time_packets: packets with a time of the network card.
        interruptions_total: how often the interface went down or vanished.
    """

    kernel_packets: int = 0
    hardware_time_packets: int = 0
    interruptions_total: int = 0
