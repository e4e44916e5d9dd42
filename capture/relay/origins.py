"""Where a heartbeat of a merged stream comes from: the hops of the heartbeat that released it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.messages import Hop
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.streams.messages import Heartbeat

MOST_HOPS = 4
MOST_COUNTERS = 16
_MOST_LETTERS = 100


@dataclass(frozen=True, slots=True)
class Origin:
    """A heartbeat of an input: its host and its identity there name it, and its hops so far.

    Attributes:
        host: the name of the input.
        beat: the heartbeat.
    """

    host: str
    beat: Heartbeat

    def hops(self) -> tuple[Hop, ...]:
        """Return the hops with the host before each node, as far as their numbers are valid.

        The first has the identity of the heartbeat on its host as a counter.
        """
        found = [
            Hop(
                f"{self.host}/{_printable(hop.node)}",
                hop.arrived_ns,
                hop.queued_ns,
                hop.worked_ns,
                (
                    *([("host_identity", self.beat.identity)] if not number else []),
                    *(pair for pair in hop.counters[:MOST_COUNTERS] if _is_valid(pair[1])),
                ),
            )
            for number, hop in enumerate(self.beat.trace[:MOST_HOPS])
            if all(map(_is_valid, (hop.arrived_ns, hop.queued_ns, hop.worked_ns)))
        ]
        return tuple(found) if _is_valid(self.beat.identity) else ()


def _is_valid(number: int) -> bool:
    return MIN_TIME_NS < number <= MAX_TIME_NS


def _printable(name: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in name[:_MOST_LETTERS])
