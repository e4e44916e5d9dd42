"""Reader of results that need no Spark: the stream of an LFTA is the answer."""

from __future__ import annotations

import queue
import threading
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from gscope.cli.config.capture_settings import CONSUMER
from gscope.cli.delivery.answer_order import AnswerOrder
from gscope.cli.delivery.answered_losses import AnsweredLosses
from gscope.cli.delivery.checkpoint import StreamPosition
from gscope.cli.delivery.stream_events import StreamRows, StreamsFinished
from gscope.cli.delivery.stream_rows import StreamDelivery
from gscope.cli.events import PASSTHROUGH, Event
from gscope.engine.log_client.flight_client import LogClient
from gscope.errors import GscopeError, StreamError
from gscope.queries.expressions.types import Direction
from gscope.queries.plan.program import StreamInput
from gscope.queries.run_folder.layout import LOG_FOLDER, SOCKET_FILE
from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat, Shed
from gscope.queries.streams.process_events import ProcessError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gscope.cli.events import Events
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.loss_reasons import IncompleteEpochs
    from gscope.queries.streams.messages import Message

PORTION_BYTES = 64 << 20
"""Bytes of segments read together; a single segment may be larger."""


class Passthrough:
    """Reads the streams that are answers and puts their rows on the event queue.

    Rows come in the order of their first increasing column. Messages are acknowledged when the rows
    they released are safe, and read no faster than the rows are delivered. Its events are
    ``StreamRows``, ``StreamsFinished``, and ``ProcessError`` if the log exists but cannot be read.

    Args:
        program: the program with the results.
        run_dir: the run's folder.
        positions: how far streams were delivered before.
    """

    def __init__(
        self,
        program: Program,
        run_dir: Path,
        positions: Mapping[str, StreamPosition] | None = None,
    ) -> None:
        self._run_dir = run_dir
        self._outlets = {
            stream: _delivery(
                program, query, source, (positions or {}).get(stream, StreamPosition())
            )
            for query, source in program.results
            if isinstance(source, StreamInput)
            for stream in program.lfta(source.lfta).streams
        }
        self._losses = {
            stream: AnsweredLosses(lfta)
            for lfta in program.lftas
            if lfta.answers is not None
            for stream in lfta.streams
        }
        self._incomplete: list[IncompleteEpochs] = []
        self._thread: threading.Thread | None = None
        self._is_wanted = threading.Event()
        self._acknowledged: dict[str, int] = {}

    @property
    def streams(self) -> tuple[str, ...]:
        """Return the streams it reads; () if every result needs Spark."""
        return tuple(self._outlets)

    def connect(self, events: Events) -> None:
        """Start reading, in a thread: the daemon listens, for the first time or again."""
        self._is_wanted.set()
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, args=(events,), name=PASSTHROUGH, daemon=True
            )
            self._thread.start()

    def _run(self, events: Events) -> None:
        has_ended = False
        while not has_ended:
            # The supervisor handles a daemon that is gone, and announces its successor.
            self._is_wanted.wait()
            self._is_wanted.clear()
            try:
                with LogClient(self._run_dir / SOCKET_FILE) as client:
                    has_ended = self._follow(client, events)
            except (GscopeError, OSError) as error:
                events.put(Event(PASSTHROUGH, ProcessError(str(error))))
                return
        events.put(Event(PASSTHROUGH, StreamsFinished()))

    def _follow(self, client: LogClient, events: Events) -> bool:
        """Read until all streams have ended; return False if the daemon disconnected before.

        Raises:
            StreamError: the daemon is connected but refuses a request.
        """
        outlets = self._outlets
        if all(outlet.is_done for outlet in outlets.values()):
            # Recorded before a kill; the daemon may not have received it, or may have ended since.
            ends = {name: outlet.next for name, outlet in outlets.items()}
            client.acknowledge_last(CONSUMER, ends)
            return True
        try:
            for messages in client.subscribe({name: each.next for name, each in outlets.items()}):
                for portion in _portions(messages):
                    gone = self._lease(client, portion)
                    for message in portion:
                        self._take(message, gone)
                    self._deliver(client, {message.stream for message in portion}, events)
        except StreamError:
            if _is_there(client):
                raise
            return False
        if not all(outlet.has_ended for outlet in outlets.values()):
            return False
        self._deliver(client, outlets, events, is_last=True)
        return True

    def _lease(self, client: LogClient, messages: Sequence[Message]) -> set[tuple[str, int]]:
        """Lease the messages that are read but not acknowledged; return those already shed."""
        batches = [message for message in messages if isinstance(message, Batch)]
        if not batches:
            return set()
        wanted = {stream: list(outlet.held) for stream, outlet in self._outlets.items()}
        for batch in batches:
            wanted[batch.stream].append(batch.sequence)
        gone = client.lease(CONSUMER, wanted).gone
        return {(stream, sequence) for stream, found in gone.items() for sequence in found}

    def _take(self, message: Message, gone: set[tuple[str, int]]) -> None:
        outlet = self._outlets[message.stream]
        match message:
            case Batch() if (message.stream, message.sequence) in gone:
                pass  # the log counts it
            case Batch():
                outlet.add(message, partial(_read, self._run_dir / LOG_FOLDER / message.path))
            case Heartbeat():
                outlet.raise_bound({p.column: p.bound for p in message.punctuations})
                if message.losses is not None and message.stream in self._losses:
                    self._incomplete += self._losses[message.stream].new(message.losses)
            case EndOfStream() | Shed():
                pass  # the log counts shed batches
        outlet.has_ended = isinstance(message, EndOfStream)
        outlet.next = message.sequence + 1

    def _deliver(
        self, client: LogClient, streams: Iterable[str], events: Events, *, is_last: bool = False
    ) -> None:
        """Deliver rows, wait until they are taken, and acknowledge what is safe."""
        rows: list[tuple[str, Iterator[pa.Table]]] = []
        for stream in streams:
            tables = self._outlets[stream].let_go()
            if tables is not None:
                rows.append((self._outlets[stream].query, tables))
        positions = {stream: self._outlets[stream].position for stream in streams}
        reply: queue.SimpleQueue[dict[str, int]] = queue.SimpleQueue()
        incomplete, self._incomplete = tuple(self._incomplete), []
        found = StreamRows(rows, positions, is_last, reply.put, incomplete)
        events.put(Event(PASSTHROUGH, found))
        cursors = reply.get()
        if is_last:
            client.acknowledge_last(CONSUMER, cursors)
        elif cursors != self._acknowledged:
            client.acknowledge(CONSUMER, cursors)
            self._acknowledged = cursors


def _read(path: Path) -> pa.Table:
    """Yield the rows of a segment.

    Raises:
        StreamError: the segment is missing or damaged.
    """
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        message = f"cannot read {path.name} of the stream log: {error}"
        raise StreamError(message) from error


def _portions(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Split ``messages`` into portions that fit into memory: a backlog may hold gigabytes."""
    portion: list[Message] = []
    size = 0
    for message in messages:
        portion.append(message)
        size += message.size_bytes if isinstance(message, Batch) else 0
        if size >= PORTION_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _is_there(client: LogClient) -> bool:
    try:
        client.ping()
    except StreamError:
        return False
    return True


def order_column(schema: Schema) -> str | None:
    """Return the column that orders the rows; None to leave them in the order of the packets."""
    increasing = [c.name for c in schema.columns if c.ordering.direction is Direction.INCREASING]
    return increasing[0] if increasing else None


def _delivery(
    program: Program, query: str, source: StreamInput, position: StreamPosition
) -> StreamDelivery:
    """Return the delivery of a stream that is the result ``query``, or a part of it."""
    schema = program.schema(query)
    column, order = order_column(schema), None
    if program.lfta(source.lfta).answers is not None:
        order = AnswerOrder.of(program, query)
        if (ordered := program.order(query)) is not None:
            # Rows are ordered within their epoch, so they wait for all of it.
            column = ordered.epoch
    is_nullable = any(each.name == column and each.is_nullable for each in schema.columns)
    return StreamDelivery(query, column, position, is_nullable=is_nullable, order=order)
