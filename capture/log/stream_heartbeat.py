"""A heartbeat on one stream, before the log has numbered it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.capture.log.retained_stream import UNNUMBERED
from gscope.queries.streams.messages import Heartbeat, Hop, Punctuation
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.streams.gaps import HostGap
    from gscope.queries.streams.losses import Losses
    from gscope.queries.streams.thresholds import ThresholdSchedule


@dataclass(frozen=True, slots=True)
class StreamHeartbeat:
    """The content of one heartbeat on one stream.

    Attributes:
        stream: name of the stream.
        punctuations: what it promises of the stream's temporal columns.
        trace: the hops that it has passed, in their order; () if it is not traced.
        schedule: the thresholds of the stream's sample, if they follow the load; else None.
        gaps: what the stream lacks because it went on without a host.
        losses: what is missing from the stream; None if nothing is.
    """

    stream: str
    punctuations: tuple[Punctuation, ...]
    trace: tuple[Hop, ...] = ()
    schedule: ThresholdSchedule | None = None
    gaps: tuple[HostGap, ...] = ()
    losses: Losses | None = None

    def through_log(self, began_ns: int) -> StreamHeartbeat:
        """Return it with the log's hop: queued until ``began_ns``, then worked until now."""
        if not self.trace:
            return self
        last = self.trace[-1]
        arrived_ns = last.arrived_ns + last.queued_ns + last.worked_ns
        queued_ns = max(0, began_ns - arrived_ns)
        hop = Hop("log", arrived_ns, queued_ns, max(0, time.time_ns() - began_ns))
        return replace(self, trace=(*self.trace, hop))

    def as_message(self, identity: int, clock_ns: int) -> Heartbeat:
        """Return the message of heartbeat ``identity``, sent at ``clock_ns``."""
        return Heartbeat(
            self.stream,
            UNNUMBERED,
            identity,
            clock_ns,
            self.punctuations,
            self.trace,
            self.schedule,
            self.gaps,
            self.losses,
        )
