"""Answers in the log: rows that a run has computed, for a run on another host to read.

The run that has computed them may repeat what it has sent, after a failure of its own or of this
process. Each portion therefore has a *place*, the number of its step and its number in the step,
and a portion is written once: what the log has of a stream is in a file beside it, which is written
before the portion (as in ``capture/relay/relay_state.py``).
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from typing import TYPE_CHECKING

from gscope.capture.log.os_errors import plain_errors
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.capture.log.stream_rows import conformed, extents_of
from gscope.errors import StreamError
from gscope.queries.run_folder.whole_file import replace_file
from gscope.queries.streams.event_codec import from_plain, to_plain
from gscope.queries.streams.losses import NO_LOSSES, Losses, united
from gscope.queries.streams.messages import Hop, Punctuation, promised_name
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from gscope.capture.log.log import StreamLog
    from gscope.queries.plan.program import Lfta, Program
    from gscope.queries.streams.losses import LostRows

Place = tuple[int, int]
"""The number of a step, and that of a portion in it."""


@dataclass(frozen=True, slots=True)
class _Written:
    """What the log has of a stream.

    Attributes:
        step: the step of the last portion.
        part: its number in the step.
        sequence: the number that its message was going to get; the log has it if its next one is
            higher.
        step_before: the step of the portion before.
        part_before: the number of that.
    """

    step: int
    part: int
    sequence: int
    step_before: int
    part_before: int


class AnswerWriter:
    """Writes answers to their streams of ``log``; for any thread.

    Args:
        log: the log, which has a stream for each of ``program.answers``.
        program: the program of the run.
        folder: where it notes what is written; it exists.

    Raises:
        StreamError: what an earlier process noted is damaged.
    """

    def __init__(self, log: StreamLog, program: Program, folder: Path) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._lftas = {stream: each for each in program.answers for stream in each.streams}
        self._paths = {
            stream: folder / f"{each.name}.json"
            for each in program.answers
            for stream in each.streams
        }
        self._places = {stream: self._written(stream) for stream in self._lftas}
        latest = log.latest
        self._promised = {
            stream: {p.column: p.bound for p in latest[stream].punctuations}
            if stream in latest
            else {}
            for stream in self._lftas
        }
        self._losses = {
            stream: (latest[stream].losses if stream in latest else None) or NO_LOSSES
            for stream in self._lftas
        }
        last = max((latest[each].identity for each in self._lftas if each in latest), default=0)
        self._identities = itertools.count(last + 1)

    def write(
        self,
        stream: str,
        place: Place | None,
        rows: pa.Table,
        bounds: Mapping[str, int],
        lost: Sequence[LostRows] = (),
        *,
        is_last: bool = False,
    ) -> None:
        """Write a portion of an answer, unless the log has it, and what its stream then promises.

        Args:
            stream: the stream.
            place: the place of the portion; None for a promise alone.
            rows: the rows; none for a portion without.
            bounds: by the name of a promise, the bound below which no later portion has rows.
            lost: which rows below these bounds may lack packets.
            is_last: whether the stream ends here.

        Raises:
            StreamError: the stream is unknown, the rows are not its own, or they cannot be written.
        """
        lfta = self._lftas.get(stream)
        if lfta is None:
            message = f"unknown stream of answers {stream!r:.100}"
            raise StreamError(message)
        with self._lock:
            if self._log.has_ended(stream):
                return
            if place is not None and place > self._places[stream]:
                self._write_rows(lfta, stream, place, rows)
            self._promise(lfta, stream, bounds, lost)
            if is_last:
                self._log.end([stream])

    def _write_rows(self, lfta: Lfta, stream: str, place: Place, rows: pa.Table) -> None:
        table = conformed(rows, lfta)
        if table.num_rows:
            self._note(stream, place)
            self._log.write_answers(stream, table, extents_of(table, lfta), tuple(self._lftas))
        self._places[stream] = place

    def _promise(
        self, lfta: Lfta, stream: str, bounds: Mapping[str, int], lost: Sequence[LostRows]
    ) -> None:
        """Write a heartbeat if it says more than the last one."""
        promised = self._promised[stream]
        known = {promised_name(column) for column in lfta.schema.temporal}
        raised = {
            name: bound
            for name, bound in bounds.items()
            if name in known and bound > promised.get(name, bound - 1)
        }
        losses = united((self._losses[stream], Losses(rows=tuple(lost))))
        if not raised and losses == self._losses[stream]:
            return
        began_ns = time.time_ns()
        promised |= raised
        self._losses[stream] = losses
        beat = StreamHeartbeat(
            stream,
            tuple(Punctuation(name, bound) for name, bound in promised.items()),
            (Hop(stream, began_ns, 0, time.time_ns() - began_ns),),
            losses=losses or None,
        )
        self._log.write_heartbeat(next(self._identities), began_ns, [beat])

    def _note(self, stream: str, place: Place) -> None:
        """Note, before a portion is written, that the log will have it."""
        sequence = self._log.positions[stream].end
        self._store(stream, _Written(*place, sequence, *self._places[stream]))

    def _store(self, stream: str, noted: _Written) -> None:
        with plain_errors("write", self._paths[stream]):
            replace_file(self._paths[stream], json.dumps(to_plain(noted)))

    def _written(self, stream: str) -> Place:
        """Return the place of the last portion that the log has; (0, -1) before the first."""
        path = self._paths[stream]
        if not path.exists():
            return (0, -1)
        with plain_errors("read", path):
            text = path.read_bytes()
        try:
            noted: _Written = from_plain(_Written, json.loads(text))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            message = f"the record of answers {path} is damaged: {error}"
            raise StreamError(message) from error
        if self._log.positions[stream].end > noted.sequence:
            return (noted.step, noted.part)
        # Other messages may get that number before the portion comes again.
        before = (noted.step_before, noted.part_before)
        self._store(stream, _Written(*before, -1, *before))
        return before
