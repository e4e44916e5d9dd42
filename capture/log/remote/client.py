"""Client of a log on another host, or of one on this host, over Arrow Flight.

What a server sends is bounded in size, and checked before it is used; nothing of it is executed.
Arrow expands compressed data before it can be checked, so the bound is not one on the memory that a
server takes on purpose.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.flight as flight

from gscope.capture.log.description import LogDescription
from gscope.capture.log.remote.address import TcpAddress
from gscope.capture.log.remote.failures import failure_of
from gscope.capture.log.server import GONE, MAX_MESSAGES, MESSAGE_SCHEMA
from gscope.errors import DisconnectedError, StreamError
from gscope.queries.run_folder.socket_address import SocketAddress
from gscope.queries.streams.flight_errors import FlightErrors, sentence_of
from gscope.queries.streams.wire import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gscope.capture.log.remote.address import LogAddress
    from gscope.queries.streams.messages import Message

CALL_S = 20.0
"""Seconds after which an action, or an empty segment, counts as unanswered."""

SLOWEST_BYTES_PER_S = 16 << 10
"""Bytes of a segment's file for which one more second is granted; its rows are larger."""

MAX_SEGMENT_BYTES = 8 << 30
"""Limit of the rows of a segment, unless the caller has a lower one."""

MAX_MESSAGE_BYTES = 64 << 20
"""Limit of one message of Flight: ``MAX_MESSAGES``, or 16,384 rows of a segment."""

MAX_RESULT_BYTES = 4 << 20
"""Limit of the result of an action; the description of a log is the largest."""

AUTHORIZATION = "authorization"
"""The header that holds ``Bearer`` and the token."""

_MOST_LETTERS = 500

_BATCH_BYTES = 4 << 10
"""What a record batch takes beside its rows: many small ones must not add up."""


class RemoteLog:
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
        self.address = address
        self.consumer = consumer
        place = address.place
        self._socket: SocketAddress | None = None
        if isinstance(place, TcpAddress):
            scheme = "grpc" if address.certificates is None else "grpc+tls"
            location = f"{scheme}://{place}"
        else:
            self._socket = SocketAddress(place)
            location = self._socket.location
        options: dict[str, Any] = {}
        if address.certificates is not None:
            options["tls_root_certs"] = address.certificates
        self._client = flight.connect(
            location,
            generic_options=[("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)],
            **options,
        )

    def describe(self) -> LogDescription:
        """Register this consumer, and return what the server has; the first call of a connection.

        Raises:
            StreamError: the server refused, or is of another version.
            DisconnectedError: the server does not answer.
        """
        return LogDescription.from_json(self._act("describe", {"consumer": self.consumer}))

    def subscribe(self, cursors: Mapping[str, int]) -> Subscription:
        """Return the messages of the streams in ``cursors``, from these numbers on.

        Raises:
            StreamError: the server refused.
            DisconnectedError: the server does not answer.
        """
        ticket = {"cursors": dict(cursors), "consumer": self.consumer}
        return Subscription(self._get(ticket, None), str(self.address), self._errors)

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
            with self._errors():
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
        self._act("acknowledge", {"consumer": self.consumer, "cursors": dict(cursors)})

    def deregister(self) -> None:
        """Let the server forget this consumer, and keep nothing for it.

        Raises:
            StreamError: the server refused.
            DisconnectedError: the server does not answer.
        """
        self._act("deregister", {"consumer": self.consumer})

    def punctuate(self, wanted: Mapping[str, Mapping[str, int]]) -> None:
        """Ask for heartbeats of streams as soon as they can promise bounds.

        Raises:
            StreamError: the server refused.
            DisconnectedError: the server does not answer.
        """
        self._act("punctuate", {"wanted": {stream: dict(each) for stream, each in wanted.items()}})

    def ping(self) -> None:
        """Check that the server answers.

        Raises:
            StreamError: the server refused.
            DisconnectedError: the server does not answer.
        """
        self._act("ping", {})

    def close(self) -> None:
        """Close the connection; harmless when called twice."""
        self._client.close()
        if self._socket is not None:
            self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _options(self, timeout_s: float | None) -> flight.FlightCallOptions:
        token = self.address.token
        headers = [(AUTHORIZATION.encode(), f"Bearer {token}".encode())] if token else []
        return flight.FlightCallOptions(timeout=timeout_s, headers=headers)

    def _get(self, ticket: Mapping[str, object], timeout_s: float | None) -> Any:
        with self._errors():
            body = flight.Ticket(json.dumps(ticket).encode())
            return self._client.do_get(body, self._options(timeout_s))

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

    def _act(self, name: str, fields: Mapping[str, object]) -> bytes:
        with self._errors():
            action = flight.Action(name, json.dumps(fields).encode())
            # No more than the first two are received.
            results = list(islice(self._client.do_action(action, self._options(CALL_S)), 2))
        bodies = [result.body.to_pybytes() for result in results]
        if len(bodies) != 1 or len(bodies[0]) > MAX_RESULT_BYTES:
            message = (
                f"{self.address}: expected one result of {name} of at most {MAX_RESULT_BYTES} "
                f"bytes, got {', '.join(str(len(body)) for body in bodies) or 'none'}"
            )
            raise StreamError(message)
        return bodies[0]  # type: ignore[no-any-return]

    def _errors(self) -> _RemoteErrors:
        return _RemoteErrors(self.address)


class Subscription:
    """Messages as a server writes them: an iterator that ``cancel`` ends from any thread.

    It ends when all its streams have ended, or when the server stops.
    """

    def __init__(self, reader: Any, server: str, errors: Callable[[], _RemoteErrors]) -> None:
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
        records: list[bytes] = _checked(batch, self._server).column(0).to_pylist()
        return records

    def cancel(self) -> None:
        """End the iterator; harmless when it has ended."""
        self._reader.cancel()


class _RemoteErrors(FlightErrors):
    """Context that turns errors of Flight into ``StreamError``, with the address of the server."""

    def __init__(self, server: LogAddress) -> None:
        self._server = server

    def refusal(self, error: BaseException) -> str:
        """Return what the server says."""
        if isinstance(error, flight.FlightUnauthenticatedError):
            return f"{self._server} refused the token: {_printable(error)}"
        return f"{self._server}: {_printable(error)}"

    def disconnection(self, error: BaseException) -> StreamError:
        """Return a refusal if another attempt would fail in the same way."""
        failure = failure_of(_printable(error), self._server)
        return (StreamError if failure.is_refused else DisconnectedError)(failure.sentence)

    def silence(self, error: BaseException) -> str:
        """Return why there is no answer."""
        return failure_of(_printable(error), self._server).sentence


def _printable(error: BaseException) -> str:
    """Return what a server says, cut and without control characters."""
    return "".join(c if c.isprintable() else " " for c in sentence_of(error)[:_MOST_LETTERS])


def _checked(batch: pa.RecordBatch, server: str) -> pa.RecordBatch:
    """Return ``batch`` once its offsets, indices and NULL counts are checked: they may be hostile.

    Raises:
        StreamError: they are not.
    """
    try:
        batch.validate(full=True)
    except pa.ArrowException as error:
        message = f"{server} sent invalid data: {_printable(error)}"
        raise StreamError(message) from error
    return batch
