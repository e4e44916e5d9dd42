"""A connection to a Flight server on another host, or on this one, and its errors."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import pyarrow.flight as flight

from gscope.capture.log.remote.address import TcpAddress
from gscope.capture.log.remote.failures import failure_of
from gscope.errors import DisconnectedError, StreamError
from gscope.queries.run_folder.socket_address import SocketAddress
from gscope.queries.streams.flight_errors import FlightErrors, sentence_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.capture.log.remote.address import LogAddress

CALL_S = 20.0
"""Seconds after which an action, or an empty segment, counts as unanswered."""

MAX_MESSAGE_BYTES = 64 << 20
"""Limit of one message of Flight: ``MAX_MESSAGES``, or 16,384 rows of a segment."""

MAX_RESULT_BYTES = 4 << 20
"""Limit of the result of an action; the description of a log is the largest."""

AUTHORIZATION = "authorization"
"""The header that holds ``Bearer`` and the token."""

_MOST_LETTERS = 500


class RemoteConnection:
    """A connection to the server at ``address``; a context manager.

    Methods may be called from several threads.

    Raises:
        StreamError: the folder of a unix socket cannot be opened. A missing server shows on first
            use.
    """

    def __init__(self, address: LogAddress) -> None:
        self.address = address
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
        self.client = flight.connect(
            location,
            generic_options=[("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)],
            **options,
        )

    def act(self, name: str, fields: Mapping[str, object], timeout_s: float | None = None) -> bytes:
        """Run an action of the server, and return its one result, within ``CALL_S`` by default.

        Raises:
            StreamError: the server refused, or sent something else.
            DisconnectedError: the server does not answer.
        """
        limit_s = CALL_S if timeout_s is None else timeout_s
        with self.errors():
            action = flight.Action(name, json.dumps(fields).encode())
            # No more than the first two are received.
            results = list(islice(self.client.do_action(action, self.options(limit_s)), 2))
        bodies = [result.body.to_pybytes() for result in results]
        if len(bodies) != 1 or len(bodies[0]) > MAX_RESULT_BYTES:
            message = (
                f"{self.address}: expected one result of {name} of at most {MAX_RESULT_BYTES} "
                f"bytes, got {', '.join(str(len(body)) for body in bodies) or 'none'}"
            )
            raise StreamError(message)
        return bodies[0]  # type: ignore[no-any-return]

    def options(self, timeout_s: float | None) -> flight.FlightCallOptions:
        """Return the options of a call: its time limit, and the token."""
        token = self.address.token
        headers = [(AUTHORIZATION.encode(), f"Bearer {token}".encode())] if token else []
        return flight.FlightCallOptions(timeout=timeout_s, headers=headers)

    def errors(self) -> RemoteErrors:
        """Return a context that turns errors of Flight into ``StreamError``."""
        return RemoteErrors(self.address)

    def close(self) -> None:
        """Close the connection; harmless when called twice."""
        self.client.close()
        if self._socket is not None:
            self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class RemoteErrors(FlightErrors):
    """Context that turns errors of Flight into ``StreamError``, with the address of the server."""

    def __init__(self, server: LogAddress) -> None:
        self._server = server

    def refusal(self, error: BaseException) -> str:
        """Return what the server says."""
        if isinstance(error, flight.FlightUnauthenticatedError):
            return f"{self._server} refused the token: {printable(error)}"
        return f"{self._server}: {printable(error)}"

    def disconnection(self, error: BaseException) -> StreamError:
        """Return a refusal if another attempt would fail in the same way."""
        failure = failure_of(printable(error), self._server)
        return (StreamError if failure.is_refused else DisconnectedError)(failure.sentence)

    def silence(self, error: BaseException) -> str:
        """Return why the other side has not answered."""
        return failure_of(printable(error), self._server).sentence


def printable(error: BaseException) -> str:
    """Return what a server says, cut and without control characters."""
    return "".join(c if c.isprintable() else " " for c in sentence_of(error)[:_MOST_LETTERS])
