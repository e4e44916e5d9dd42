"""Client of a log on another host, or of one on this host, over Arrow Flight.

What a server sends is bounded in size, and checked; nothing of it is executed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.flight as flight

from gscope.capture.log.description import LogDescription
from gscope.capture.log.server import GONE, MESSAGE_SCHEMA
from gscope.capture.remote.address import TcpAddress
from gscope.errors import DisconnectedError, StreamError
from gscope.queries.run_folder.socket_address import SocketAddress
from gscope.queries.streams.wire import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType

    from gscope.capture.remote.address import LogAddress
    from gscope.queries.streams.messages import Message

CALL_S = 20.0
"""Seconds after which an action, or the next part of a segment, counts as unanswered."""

MAX_MESSAGE_BYTES = 64 << 20
"""Limit of one message of a server: at most 1,024 messages, or 16,384 rows of a segment."""

AUTHORIZATION = "authorization"
"""The header that holds ``Bearer`` and the token."""

_MOST_WORDS = 500


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
        return Subscription(self._get(ticket, None), self._errors)

    def pull(self, stream: str, sequence: int) -> pa.Table | None:
        """Return the rows of a batch; None if it was shed, or acknowledged by this consumer.

        Raises:
            StreamError: the server refused.
            DisconnectedError: the server does not answer, or the connection was cut.
        """
        ticket = {"segment": {"stream": stream, "sequence": sequence}}
        try:
            with self._errors():
                reader = self._get(ticket, CALL_S)
                return reader.read_all()
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

    def _act(self, name: str, fields: Mapping[str, object]) -> bytes:
        with self._errors():
            action = flight.Action(name, json.dumps(fields).encode())
            results = list(self._client.do_action(action, self._options(CALL_S)))
        if len(results) != 1:
            message = f"{self.address}: expected one result of {name}, got {len(results)}"
            raise StreamError(message)
        return results[0].body.to_pybytes()  # type: ignore[no-any-return]

    def _errors(self) -> _RemoteErrors:
        return _RemoteErrors(str(self.address))


class Subscription:
    """Messages as a server writes them: an iterator that ``cancel`` ends from any thread.

    It ends when all its streams have ended, or when the server stops.
    """

    def __init__(self, reader: Any, errors: Callable[[], _RemoteErrors]) -> None:
        self._reader = reader
        self._errors = errors

    def __iter__(self) -> Iterator[list[Message]]:
        """Yield the messages that arrive together.

        Raises:
            StreamError: the server sent something else, or refused.
            DisconnectedError: the connection was cut.
        """
        with self._errors():
            if not self._reader.schema.equals(MESSAGE_SCHEMA):
                message = "the server sent something else than messages"
                raise StreamError(message)
            try:
                for chunk in self._reader:
                    yield [decode(record) for record in chunk.data.column(0).to_pylist()]
            finally:
                self._reader.cancel()

    def cancel(self) -> None:
        """End the iterator; harmless when it has ended."""
        self._reader.cancel()


class _RemoteErrors:
    """Context that turns errors of Flight into ``StreamError``, with the address of the server."""

    def __init__(self, server: str) -> None:
        self._server = server

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, flight.FlightUnauthenticatedError):
            message = f"{self._server} refused the token: {_sentence(error)}"
            raise StreamError(message) from error
        if isinstance(error, flight.FlightServerError):
            message = f"{self._server}: {_sentence(error)}"
            raise StreamError(message) from error
        if isinstance(error, pa.ArrowException | OSError):
            message = f"{self._server} does not answer: {_sentence(error)}"
            raise DisconnectedError(message) from error


def _sentence(error: BaseException) -> str:
    """Return what the error of a server says, without Flight's additions or control characters."""
    text = str(error).split(". Detail:")[0].split(". gRPC client debug context:")[0]
    return "".join(c if c.isprintable() else " " for c in text[:_MOST_WORDS])
