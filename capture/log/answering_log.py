"""The part of a log that takes rows which a run has answered, for readers on other hosts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from gscope.capture.log.thinnable_log import ThinnableLog
from gscope.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    import pyarrow as pa

    from gscope.capture.log.budget import Budget
    from gscope.capture.log.sealing import Sealer
    from gscope.queries.streams.messages import Extent, Message


class AnsweringLog(ThinnableLog, ABC):
    """A log that may have streams of answers."""

    _folder: Path
    _budget: Budget
    _sealer: Sealer

    def write_answers(
        self,
        stream: str,
        rows: pa.Table,
        extents: tuple[Extent, ...],
        room: Collection[str],
    ) -> None:
        """Write rows of an answer as one batch; may block until there is room.

        This need not be the thread that writes the streams of LFTAs.
        If rows are not shed, answers wait for readers, but not for room in the budget: that may be
        used up by rows whose reader waits until its answers are taken.

        Args:
            stream: a stream of answers, not ended.
            rows: at least one row, in the schema of the stream.
            extents: extents of the stream's temporal columns, in schema order.
            room: the streams of answers, of which at most half of the budget may wait for readers.

        Raises:
            StreamError: cannot be written, or the log was closed.
        """
        if not self._budget.is_lossy:
            with self._changed:
                limit = self._budget.limit_bytes // 2
                self._changed.wait_for(
                    lambda: self._is_closed or self._ledger.waiting_bytes(room) < limit
                )
        if self._is_closed:
            problem = f"cannot write to the stream log {self._folder}: it is closed"
            raise StreamError(problem)
        self._publish([self._sealer.write_answers(stream, rows, extents)])

    @abstractmethod
    def _publish(self, messages: Sequence[Message]) -> bool:
        """Publish messages to readers; return False if the disk is full and they must wait."""
