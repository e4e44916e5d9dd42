"""The account of every packet of a capture, at its end."""

from __future__ import annotations

import dataclasses
from dataclasses import field
from typing import TYPE_CHECKING, Any

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

UNDECODED = ("malformed_packets", "unsupported_packets")
"""Fields of an interface in ``capture/stats.json`` that count packets by reason."""


@dataclass(frozen=True, slots=True)
class InterfaceSummary:
    """The counters of one interface, in packets.

    They add up::

        received = dropped + filtered + shed + late + malformed + unsupported + accepted + unread

    Attributes:
        name: name of the interface.
        received: packets that came from the source.
        dropped: packets lost for want of room before this process took them.
        filtered: packets rejected by the source's own filter.
        shed: packets that a query wanted and that are in no sample. They are left out on purpose:
            the answer estimates what they would have added.
        late: packets that stepped back in time by more than the interface's skew.
        malformed: packets that are damaged or not captured completely, by reason; the fields that
            could be decoded may be in answers.
        accepted: packets decoded as a whole, from which each LFTA then selects.
        unread: packets that had arrived and were not processed when the capture was stopped.
        damage: sentences on parts of the input that were unusable.
        needed_skew_ns: for files, the skew at which no packet would have been late; 0 if none was.
        unread_links: packets of unsupported link types, by name; they are also in ``unsupported``.
        unsupported: packets that gscope does not decode as a whole although nothing is wrong with
            them, by reason; the fields that could be decoded may be in answers.
    """

    name: str
    received: int
    dropped: int
    filtered: int
    shed: int
    late: int
    malformed: dict[str, int]
    accepted: int
    unread: int
    damage: tuple[str, ...]
    needed_skew_ns: int = 0
    unread_links: dict[str, int] = field(default_factory=dict)
    unsupported: dict[str, int] = field(default_factory=dict)


def added_by_reason(*counts: Mapping[str, int]) -> dict[str, int]:
    """Return the sums of packets by reason."""
    total: dict[str, int] = {}
    for each in counts:
        for reason, count in each.items():
            total[reason] = total.get(reason, 0) + count
    return total


def empty_summary(interface: str) -> InterfaceSummary:
    """Return the summary of an interface of which no packet was captured."""
    return InterfaceSummary(interface, 0, 0, 0, 0, 0, {}, 0, 0, ())


@dataclass(frozen=True, slots=True)
class CaptureSummary:
    """The loss summary of a whole capture.

    Attributes:
        interfaces: the summary of each interface.
        lftas: for each stream, the counters of the LFTA that wrote it.
        log: counters of the stream log.
        phases: durations of the capture's phases, in seconds, by name.
        is_stopped: whether the capture was stopped before the end of its input.
        refused: for inputs left out because they are not captures, by interface, the reason.
        failed: for live interfaces that ended before the run, by interface, the reason.
        logged: for each stream, the account of its tuples in the log; see ``StreamTotals``.
        saved: what became of packets to be saved, see ``SavingCounters``; {} if none were.
        inputs: the counters of each input of a relay; () if packets are captured.
        sample_rate: the fixed rate at which packets are sampled; 1 if all are kept.
        least_rate: the least rate at which packets were sampled because the capture was overloaded.
    """

    interfaces: tuple[InterfaceSummary, ...]
    lftas: dict[str, dict[str, int]]
    log: dict[str, int]
    phases: dict[str, float]
    is_stopped: bool
    refused: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    logged: dict[str, dict[str, int]] = field(default_factory=dict)
    saved: dict[str, int | str] = field(default_factory=dict)
    inputs: tuple[dict[str, Any], ...] = ()
    sample_rate: float = 1.0
    least_rate: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain JSON values."""
        return dataclasses.asdict(self)
