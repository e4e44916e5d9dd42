"""Client of a log on another host, or of one on this host, over Arrow Flight.

What a server sends is bounded in size, and checked before it is used; nothing of it is executed.
Arrow expands compressed data before it can be checked, so the bound is not one on the memory that a
server takes on purpose.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as flight

from gscope.capture.log.description import LogDescription
from gscope.capture.log.remote.connection import CALL_S, RemoteConnection, printable
from gscope.capture.log.server import GONE, MAX_MESSAGES, MESSAGE_SCHEMA
from gscope.errors import StreamError
from gscope.queries.streams.wire import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gscope.capture.log.remote.address import LogAddress
    from gscope.capture.log.remote.connection import RemoteErrors
    from gscope.queries.streams.messages import Message

SLOWEST_BYTES_PER_S = 16 << 10
"""Bytes of a segment's file for which one more second is granted; its rows are larger."""

MAX_SEGMENT_BYTES = 8 << 30
"""Limit of the rows of a segment, unless the caller has a lower one."""

_BATCH_BYTES = 4 << 10
"""What a record batch takes beside its rows: many small ones must not add up."""


class RemoteLog(RemoteConnection):
    """A connection to the log at ``address``; a context manager.

    Methods may be called from several threads.

    Args:
        address: where it is served.
        consumer: the name of this reader, under which it acknowledges.

    Raises:
        StreamError: the folder of a unix socket cannot be opened. A missing server shows on first
            use.
    """

    def __init__(self, address: LogAddress, consumer: str) -> None:
        super().__init__(address)
        self.consumer = consumer

    def describe(self) -> LogDescription:
        """Register this consumer, and return what the server has; the first call of a connection.

        Raises:
            StreamError: the server refused, or is of another version.
            DisconnectedError: the server does not answer.
        """
        return LogDescription.from_json(self.act("describe", {"consumer": self.consumer}))

    def subscribe(self, cursors: Mapping[str, int]) -> Subscription:
        """Return the messages of the streams in ``cursors``, from these numbers on.

        Raises:
            StreamError: the server refused.
            DisconnectedError: the server does not answer.
        """
        ticket = {"cursors": dict(cursors), "consumer": self.consumer}
        return Subscription(self._get(ticket, None), str(self.address), self.errors)

    def pull(
        self,
        stream: str,
        sequence: int,
        file_bytes: int = 0,
        most_bytes: int = MAX_SEGMENT_BYTES,
        row_groups: Sequence[int] | None = None,
    ) -> pa.Table | None:
        """Return the rows of a batch; None if it was shed, or acknowledged by this consumer.

        Args:
            stream: the stream of the batch.
            sequence: its number.
            file_bytes: the size of its file, which grants time for a slow link.
            most_bytes: the size of its rows beyond which they are refused.
            row_groups: the numbers of the row groups to return; None for all of them.

        Raises:
            StreamError: the server refused.
            DisconnectedError: the server does not answer, or the connection was cut.
        """
        segment: dict[str, object] = {"stream": stream, "sequence": sequence}
        if row_groups is not None:
            segment["row_groups"] = list(row_groups)
        ticket = {"segment": segment}
        timeout_s = CALL_S + max(0, min(file_bytes, most_bytes)) / SLOWEST_BYTES_PER_S
        try:
            with self.errors():
                return self._rows(self._get(ticket, timeout_s), most_bytes)
        except StreamError as error:
            cause = error.__cause__
            if isinstance(cause, flight.FlightServerError) and cause.extra_info == GONE:
                return None
            raise

    def acknowledge(self, cursors: Mapping[str, int]) -> None:
        """Report that this consumer needs no message below ``cursors``.

        Raises:
            StreamError: the server refused.
            DisconnectedError: the server does not answer.
        """
        self.act("acknowledge", {"consumer": self.consumer, "cursors": dict(cursors)})

    def deregister(self) -> None:
        """Let the server forget this consumer, and keep nothing for it.

        Raises:
            StreamError: the server refused.
            DisconnectedError: the server does not answer.
        """
        self.act("deregister", {"consumer": self.consumer})

    def punctuate(self, wanted: Mapping[str, Mapping[str, int]]) -> None:
        """Ask for heartbeats of streams as soon as they can promise bounds.

        Raises:
            StreamError: the server refused.
            DisconnectedError: the server does not answer.
        """
        self.act("punctuate", {"wanted": {stream: dict(each) for stream, each in wanted.items()}})

    def ping(self) -> None:
        """Check that the server answers.

        Raises:
            StreamError: the server refused.
            DisconnectedError: the server does not answer.
        """
        self.act("ping", {})

    def _get(self, ticket: Mapping[str, object], timeout_s: float | None) -> Any:
        with self.errors():
            body = flight.Ticket(json.dumps(ticket).encode())
            return self.client.do_get(body, self.options(timeout_s))

    def _rows(self, reader: Any, most_bytes: int) -> pa.Table:
        batches = []
        held_bytes = 0
        for chunk in reader:
            held_bytes += chunk.data.get_total_buffer_size() + _BATCH_BYTES
            if held_bytes > most_bytes:
                reader.cancel()
                message = f"{self.address} sent a batch of more than {most_bytes} bytes"
                raise StreamError(message)
            batches.append(_checked(chunk.data, str(self.address)))
        return pa.Table.from_batches(batches, reader.schema)


class Subscription:
    """Messages as a server writes them: an iterator that ``cancel`` ends from any thread.

    It ends when all its streams have ended, or when the server stops.
    """

    def __init__(self, reader: Any, server: str, errors: Callable[[], RemoteErrors]) -> None:
        self._reader = reader
        self._server = server
        self._errors = errors

    def __iter__(self) -> Iterator[list[Message]]:
        """Yield the messages that arrive together.

        Raises:
            StreamError: the server sent something else, or refused.
            DisconnectedError: the connection was cut.
        """
        with self._errors():
            if not self._reader.schema.equals(MESSAGE_SCHEMA):
                message = f"{self._server} sent something other than messages"
                raise StreamError(message)
            try:
                for chunk in self._reader:
                    yield [decode(record) for record in self._records(chunk.data)]
            finally:
                self._reader.cancel()

    def _records(self, batch: pa.RecordBatch) -> list[bytes]:
        if batch.num_rows > MAX_MESSAGES:
            message = f"{self._server} sent {batch.num_rows} messages: expected {MAX_MESSAGES}"
            raise StreamError(message)
        column = _checked(batch, self._server).column(0)
        if column.null_count:
            message = f"{self._server} sent NULL in place of a message"
            raise StreamError(message)
        records: list[bytes] = column.to_pylist()
        return records

    def cancel(self) -> None:
        """End the iterator; harmless when it has ended."""
        self._reader.cancel()


def _checked(batch: pa.RecordBatch, server: str) -> pa.RecordBatch:
    """Return ``batch`` once its offsets, indices and NULL counts are checked: they may be hostile.

    Raises:
        StreamError: they are not.
    """
    try:
        batch.validate(full=True)
    except pa.ArrowException as error:
        message = f"{server} sent invalid data: {printable(error)}"
        raise StreamError(message) from error
    return batch
