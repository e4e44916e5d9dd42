"""Answers for a run on another host: from the outputs of the HFTA job to the stream log.

The capture daemon serves them as it serves the rows of LFTAs (``capture/answers``). Rows are sent
by a thread, which waits while the log is full or the daemon is restarted. An output is deleted once
the log has it; one that is sent a second time, because this process was killed meanwhile, is known
there by its step.
"""

from __future__ import annotations

import queue
import threading
from dataclasses import field
from typing import TYPE_CHECKING, Any

from gscope.capture.log.stream_rows import relay_schema
from gscope.cli.delivery.answer_bounds import whole_bound
from gscope.cli.delivery.answer_order import AnswerOrder
from gscope.cli.delivery.checkpoint import DeliveryCheckpoint, DeliveryPosition
from gscope.cli.delivery.stream_events import StreamsFinished
from gscope.cli.events import PASSTHROUGH, Event
from gscope.engine.log_client.flight_client import LogClient
from gscope.engine.storage.outputs import read_output, remove_output
from gscope.errors import DisconnectedError, EngineError, GscopeError
from gscope.queries.run_folder.layout import SOCKET_FILE
from gscope.queries.streams.process_events import ProcessError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from gscope.cli.events import Events
    from gscope.queries.plan.program import Lfta, Program
    from gscope.queries.streams.process_events import CommittedOutput

PORTION_ROWS = 1 << 19
"""Rows that are sent, and logged, at once."""


@dataclass(frozen=True, slots=True)
class _Commit:
    """What is to be sent: the outputs of a step, if it has a number, and bounds behind them."""

    step: int | None
    outputs: Sequence[CommittedOutput] = ()
    bounds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    lost: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    is_last: bool = False


class AnswerFeed:
    """Sends the answers of a run to its stream log; in place of ``Delivery`` and ``Passthrough``.

    Args:
        program: the program, with streams of answers.
        outputs: the folder in which the HFTA job publishes outputs.
        run_dir: the run's folder.

    Attributes:
        rows: the number of rows sent since the run began, by query.
        is_complete: no answer has a limit here.
        streams: the streams that are written.
    """

    is_complete = False

    def __init__(self, program: Program, outputs: Path, run_dir: Path) -> None:
        self._outputs = outputs
        self._socket = run_dir / SOCKET_FILE
        self._delivered = DeliveryCheckpoint(run_dir)
        self._orders = {each.query: AnswerOrder.of(program, each.query) for each in program.answers}
        self._lftas: dict[str, Lfta] = {each.query: each for each in program.answers}
        self._step = self._delivered.position.step
        self._waiting: queue.SimpleQueue[_Commit] = queue.SimpleQueue()
        self._current: _Commit | None = None
        self._known: set[str] = set()
        self._is_served = threading.Event()
        self._thread: threading.Thread | None = None
        self.rows = {query: self._delivered.position.rows.get(query, 0) for query in self._lftas}
        self.streams = tuple(stream for each in program.answers for stream in each.streams)

    # -- what the supervisor reports ---------------------------------------------------------------

    def begin(self) -> None:
        """Begin nothing: the streams are there."""

    def on_commit(
        self,
        step: int,
        outputs: Sequence[CommittedOutput],
        bounds: Mapping[str, Mapping[str, float]] | None = None,
        lost: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    ) -> None:
        """Send the outputs of a step, unless a restarted job reports it again."""
        if step <= self._step:
            for each in outputs:
                if each.path not in self._known:
                    remove_output(self._outputs / each.path)
            return
        self._step = step
        self._known.update(each.path for each in outputs)
        self._waiting.put(_Commit(step, tuple(outputs), bounds or {}, lost or {}))

    def on_bounds(self, bounds: Mapping[str, Mapping[str, float]]) -> None:
        """Send bounds that later steps keep."""
        self._waiting.put(_Commit(None, (), bounds))

    def on_rows(self, *_: object, **__: object) -> None:
        """Refuse rows of streams: those are for the host that reads them."""
        raise AssertionError(self.streams)

    def on_answered(self, _clocks: object) -> None:
        """End the streams: the job has answered everything."""
        self._waiting.put(_Commit(None, is_last=True))

    def on_tick(self) -> None:
        """Do nothing: nothing is held back."""

    def finish(self, *, has_ended: bool = True) -> None:
        """Do nothing: nothing is held back."""

    def connect(self, events: Events) -> None:
        """Send, in a thread: the daemon listens, for the first time or again."""
        self._is_served.set()
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, args=(events,), name=PASSTHROUGH, daemon=True
            )
            self._thread.start()

    # -- the thread --------------------------------------------------------------------------------

    def _run(self, events: Events) -> None:
        try:
            while True:
                # The supervisor handles a daemon that is gone, and announces its successor.
                self._is_served.wait()
                self._is_served.clear()
                try:
                    with LogClient(self._socket) as client:
                        self._send_all(client)
                    break
                except DisconnectedError:
                    continue
        except (GscopeError, OSError) as error:
            events.put(Event(PASSTHROUGH, ProcessError(str(error))))
            return
        events.put(Event(PASSTHROUGH, StreamsFinished()))

    def _send_all(self, client: LogClient) -> None:
        """Send what is waiting, and what comes, until the streams have ended."""
        while True:
            commit = self._current = self._current or self._waiting.get()
            self._send(client, commit)
            self._current = None
            if commit.is_last:
                return

    def _send(self, client: LogClient, commit: _Commit) -> None:
        sent = dict(self.rows)
        if commit.step is not None:
            for output in commit.outputs:
                sent[output.query] += self._send_rows(client, commit.step, output)
        for query, lfta in self._lftas.items():
            bounds = _whole_bounds(commit.bounds.get(query, {}))
            lost = commit.lost.get(query, ())
            if bounds or lost or commit.is_last:
                nothing = relay_schema(lfta).empty_table()
                (stream,) = lfta.streams
                client.put_answers(stream, None, nothing, bounds, lost, is_last=commit.is_last)
        if commit.step is not None:
            self._delivered.record(DeliveryPosition(commit.step, sent))
            self.rows.update(sent)
            for output in commit.outputs:
                remove_output(self._outputs / output.path)
                self._known.discard(output.path)

    def _send_rows(self, client: LogClient, step: int, output: CommittedOutput) -> int:
        lfta = self._lftas[output.query]
        (stream,) = lfta.streams
        rows = 0
        for number, table in enumerate(self._portions(output)):
            client.put_answers(stream, (step, number), _fitted(table, lfta), {})
            rows += table.num_rows
        if rows != output.rows:
            message = f"expected {output.rows} rows in the answer {output.path}, got {rows}"
            raise EngineError(message)
        return rows

    def _portions(self, output: CommittedOutput) -> Iterator[pa.Table]:
        order = self._orders[output.query]
        path = self._outputs / output.path
        for table in read_output(path, order.temporal, output.files, keys=order.keys):
            for begin in range(0, table.num_rows, PORTION_ROWS):
                yield table.slice(begin, PORTION_ROWS)


def _fitted(table: pa.Table, lfta: Lfta) -> pa.Table:
    """Return rows of an output in the schema of the stream."""
    schema = relay_schema(lfta)
    return table.select(schema.names).cast(schema)


def _whole_bounds(bounds: Mapping[str, float]) -> dict[str, int]:
    """Return bounds of integers.

    One that is unknown, or that a float does not state, is left out.
    """
    whole = {name: whole_bound(bound) for name, bound in bounds.items()}
    return {name: bound for name, bound in whole.items() if bound is not None}
