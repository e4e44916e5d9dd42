"""The part of a log that leases batches to readers, and that is thinned when it is nearly full.

Both belong together: what a reader leases is not changed while it reads, and the reply to a lease
says what was removed before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gscope.capture.log.usage import LogUsage
from gscope.queries.streams.leases import LeaseReply

if TYPE_CHECKING:
    import threading
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    import pyarrow as pa

    from gscope.queries.streams.leases import AnsweredTimes
    from gscope.queries.streams.messages import Batch, Heartbeat, Thinned
    from gscope.queries.streams.thresholds import ThresholdSchedule


class Thinning(Protocol):
    """Removes rows by their hash from the batches of a log that is nearly full.

    The log's lock is held around every call but ``stop``.
    """

    def on_published(self) -> None:
        """Begin to thin if the log is nearly full; returns at once."""

    def on_lease(self, consumer: str, answered: Mapping[str, AnsweredTimes]) -> None:
        """Take note of the times that a consumer has answered, or will before it leases again."""

    def limits(self) -> Mapping[str, ThresholdSchedule]:
        """Return the limits of the streams that have some, above which rows may be missing."""

    @property
    def least_rate(self) -> float:
        """The least rate that a time of a stream in the log has."""

    @property
    def spared_streams(self) -> Collection[str]:
        """Streams whose batches are shed only when no other batches can be shed."""

    def stop(self) -> None:
        """Stop, and abandon the segment in progress; the log's lock is not held."""


class ThinnableLog(LogUsage):
    """A log whose batches can be leased and thinned."""

    _thinning: Thinning | None = None

    def lease(
        self, consumer: str, wanted: Mapping[str, Collection[int]]
    ) -> dict[str, tuple[int, ...]]:
        """Keep these batches from being shed until ``consumer`` leases others.

        A consumer leases a segment of a live capture before it reads it. A lease acknowledges
        nothing.

        Args:
            consumer: who is to read.
            wanted: sequence numbers of batches, by stream.

        Returns:
            Those that were shed already, by stream; their rows will never be read.

        Raises:
            StreamError: an unknown consumer or stream.
        """
        with self._changed:
            return self._ledger.lease(consumer, wanted)

    def lease_answered(
        self,
        consumer: str,
        wanted: Mapping[str, Collection[int]],
        answered: Mapping[str, AnsweredTimes],
    ) -> LeaseReply:
        """Lease batches, as ``StreamLog.lease`` does, before a step answers them.

        From now on no limit falls for times that were answered, and none of these batches is
        thinned; the reply has all limits up to now.

        Args:
            consumer: who is to read.
            wanted: sequence numbers of batches, by stream.
            answered: by stream, the times that are answered by the end of the step.

        Raises:
            StreamError: an unknown consumer or stream.
        """
        with self._changed:
            gone = self._ledger.lease(consumer, wanted)
            if self._thinning is None:
                return LeaseReply(gone)
            self._thinning.on_lease(consumer, answered)
            return LeaseReply(gone, self._thinning.limits())

    @property
    def lock(self) -> threading.Condition:
        """The log's lock, which may be taken again by the thread that holds it."""
        return self._changed

    def use_thinning(self, thinning: Thinning) -> None:
        """Let a nearly full log be thinned; before its first message is written."""
        self._thinning = thinning

    @property
    def _spared_streams(self) -> Collection[str]:
        return () if self._thinning is None else self._thinning.spared_streams

    @property
    def least_rate(self) -> float:
        """The least rate to which a stream was thinned; 1 if none was."""
        return 1.0 if self._thinning is None else self._thinning.least_rate

    def unleased(self, streams: Collection[str]) -> list[Batch]:
        """Return the batches of some streams that no consumer has leased, oldest first."""
        with self._changed:
            return list(self._ledger.sheddable(streams))

    def heartbeats(self, streams: Collection[str]) -> dict[str, Heartbeat]:
        """Return the last heartbeat of those streams that have one."""
        with self._changed:
            return {s: beat for s, beat in self._ledger.latest.items() if s in streams}

    def segment_path(self, batch: Batch) -> Path:
        """Return the path of the segment of a batch."""
        return self._segments.path(batch.path)

    def write_beside(self, batch: Batch, schema: pa.Schema, groups: Iterable[pa.Table]) -> int:
        """Write a segment that may replace that of a batch; return its bytes.

        Raises:
            StreamError: it cannot be written.
        """
        return self._segments.write_beside(batch.path, schema, groups)

    def abandon_beside(self, batch: Batch) -> None:
        """Remove what ``write_beside`` has written, if that is possible."""
        self._segments.abandon_beside(batch.path)

    def thin(self, batch: Batch, thinned: Thinned) -> bool:
        """Replace a batch, and its segment by what ``write_beside`` has written.

        Returns:
            Whether that was still possible; if not, what was written is removed.

        Raises:
            StreamError: the index cannot be written, or the segment not renamed.
        """
        with self._changed:
            is_thinned = not self._is_closed and self._ledger.thin(batch, thinned)
        if not is_thinned:
            self.abandon_beside(batch)
        return is_thinned
