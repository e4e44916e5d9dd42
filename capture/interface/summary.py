"""What became of every packet of a replay."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class InterfaceSummary:
    """The counters of one interface, in packets.

    They add up::

        received = dropped + filtered + shed + late + malformed + accepted + unread

    Attributes:
        received: came from the source.
        dropped: lost before we saw them.
        filtered: not wanted by the source's own filter.
        shed: left out on purpose, by a sampling rule.
        late: stepped back in time beyond the interface's skew.
        malformed: by reason; such a packet still carries the fields that could be read, and may be in answers.
        accepted: decoded as a whole; each LFTA then chose its own.
        unread: at hand, not processed, when the replay was stopped.
        damage: what of the input was not usable, one sentence each.
        needed_skew_ns: of captures, the skew at which no packet would have been late; 0 when none was.
        unread_links: packets of link types that gscope does not read, by name; they are malformed, too.
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

    @property
    def is_whole(self) -> bool:
        """Whether every packet of the input is accounted for in answers, as far as they want it."""
        return not (self.dropped or self.shed or self.late or self.unread or self.damage)


def empty_summary(interface: str) -> InterfaceSummary:
    """Return the summary of an interface of which no packet was captured."""
    return InterfaceSummary(interface, 0, 0, 0, 0, 0, {}, 0, 0, ())


@dataclass(frozen=True, slots=True)
class CaptureSummary:
    """The end of a replay.

    Attributes:
        interfaces: one for each.
        lftas: for each stream the counters of the LFTA that wrote it.
        log: the counters of the stream log.
        phases: seconds by name.
        is_stopped: whether it was stopped before the end of the input.
        logged: for each stream what became of its tuples in the log; see ``StreamTotals``.
        refused: why inputs that are no captures were left out, by interface.
        failed: why live interfaces ended before the run, by interface.
    """

    interfaces: tuple[InterfaceSummary, ...]
    lftas: dict[str, dict[str, int]]
    log: dict[str, int]
    phases: dict[str, float]
    is_stopped: bool
    refused: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    logged: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether nothing was lost on any interface nor in the log."""
        lost = self.log.get("shed_tuples_total", 0)
        return not lost and all(interface.is_whole for interface in self.interfaces)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return dataclasses.asdict(self)
