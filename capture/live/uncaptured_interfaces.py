"""Interfaces of a live run that this daemon does not capture: they have ended, or their devices are gone.

Their streams end, with a last heartbeat that tells what earlier daemons counted and what was lost with them, so that no
window waits for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.punctuation import NO_BOUND
from gscope.capture.log.log import StreamHeartbeat
from gscope.queries.streams.messages import Hop

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.capture.live.resume import Past
    from gscope.capture.log.log import StreamLog


def end_streams(
    log: StreamLog, streams: Iterable[str], past: Past, identity: int, now_ns: int
) -> None:
    """End the streams of an interface that nobody captures; those that have ended stay as they are.

    Args:
        log: just opened.
        streams: of the interface.
        past: what earlier daemons of the run told of it.
        identity: of the last heartbeat.
        now_ns: real time.

    Raises:
        StreamError: the log cannot be written.
    """
    clock_ns = now_ns if past.clock_ns == NO_BOUND else past.clock_ns
    beats = [
        # The log adds the promises that were made before.
        StreamHeartbeat(stream, (), (Hop(stream, now_ns, 0, 0, tuple(counters.items())),))
        for stream, counters in past.counters.items()
    ]
    log.end(streams, identity, clock_ns, beats)
