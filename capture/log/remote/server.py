"""The log's server for other hosts: a token with each request, and no more than reading.

It listens on a unix socket of the capture daemon, to which ``forwarder.py`` forwards the
connections of the TCP listener.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.flight as flight

from gscope.capture.log.remote.connection import AUTHORIZATION
from gscope.capture.log.remote.request_bound import MAX_REQUEST_BYTES
from gscope.capture.log.server import LogServer
from gscope.errors import StreamError
from gscope.queries.streams.flight_requests import request_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from gscope.capture.heartbeats.demands import Demands
    from gscope.capture.log.description import LftaDescription
    from gscope.capture.log.log import StreamLog
    from gscope.capture.log.remote.credentials import Tokens
    from gscope.capture.log.remote.readers import Readers
    from gscope.capture.log.segment_rows import SegmentRows

ACTIONS = ("describe", "acknowledge", "deregister", "punctuate", "ping")
"""The actions for other hosts."""

_OF_CONSUMERS = ("acknowledge", "deregister")
"""Those of them that a consumer may run only under its own name."""

_PEER = "unix-abstract:"
_SCHEME = "Bearer "


class RemoteLogServer(LogServer):
    """Serves a log to other hosts, whose requests are attributed to the consumer they describe.

    Args:
        log: the log.
        path: where the socket is made.
        demands: takes demands for heartbeats.
        lftas: the LFTAs whose streams are in the log.
        role: ``SENSOR`` or ``RELAY``.
        tokens: the tokens that are accepted.
        readers: notes who reads.

    Raises:
        StreamError: the socket cannot be made.
    """

    def __init__(
        self,
        log: StreamLog,
        path: Path,
        demands: Demands | None,
        *,
        lftas: tuple[LftaDescription, ...],
        role: str,
        tokens: Tokens,
        readers: Readers,
    ) -> None:
        self._readers = readers
        check = TokenCheckFactory(tokens, readers)
        super().__init__(log, path, demands, lftas=lftas, role=role, middleware={"token": check})

    @property
    def actions(self) -> dict[str, Callable[[LogServer, bytes], object]]:
        """The actions that clients may run, by name."""
        return {name: action for name, action in super().actions.items() if name in ACTIONS}

    def do_action(self, context: Any, action: Any) -> Any:
        """Run an action for the consumer of the connection."""
        connection = connection_of(context)
        consumer = self._readers.on_request(connection)
        body = action.body.to_pybytes()
        ensure_small(body)
        if action.type in _OF_CONSUMERS:
            named = _consumer(body)
            if consumer is None:
                raise _undescribed()
            if named != consumer:
                message = f"this connection is that of the consumer {consumer!r}, not of {named!r}"
                raise flight.FlightServerError(message)
        results = super().do_action(context, action)
        if action.type == "describe" and (named := _consumer(body)) is not None:
            self._readers.on_described(connection, named)
        return results

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Subscribe, or read a segment, for the consumer of the connection."""
        ensure_small(ticket.ticket)
        return super().do_get(context, ticket)

    def subscription(self, context: Any, fields: dict[str, object], cursors: dict[str, int]) -> Any:
        """Return the messages from ``cursors`` on; ends an earlier subscription of the consumer."""
        consumer = self._described(context)
        number = self._readers.begin_subscription(consumer)
        return super().subscription(
            _Subscribed(context, self._readers, consumer, number), fields, cursors
        )

    def segment(
        self, context: Any, stream: str, sequence: int, row_groups: list[int] | None
    ) -> Any:
        """Return the rows of a batch."""
        return super().segment(
            _Reading(context, self._described(context)), stream, sequence, row_groups
        )

    def messages_sent(self, context: Any, size_bytes: int) -> None:
        """Count messages that are sent."""
        self._readers.on_sent(context.consumer, size_bytes)

    def rows(self, context: Any, rows: SegmentRows) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a segment, and count them."""
        for batch in super().rows(context, rows):
            self._readers.on_sent(context.consumer, batch.nbytes, batch.num_rows)
            yield batch

    def _described(self, context: Any) -> str:
        consumer = self._readers.on_request(connection_of(context))
        if consumer is None:
            raise _undescribed()
        return consumer


class _Reading:
    """The context of a request, with the consumer that it is for."""

    def __init__(self, context: Any, consumer: str) -> None:
        self.consumer = consumer
        self._context = context

    def is_cancelled(self) -> bool:
        """Return whether the client has gone."""
        return bool(self._context.is_cancelled())


class _Subscribed(_Reading):
    """The context of a subscription, which a later one of the same consumer ends."""

    def __init__(self, context: Any, readers: Readers, consumer: str, number: int) -> None:
        super().__init__(context, consumer)
        self._readers = readers
        self._number = number

    def is_cancelled(self) -> bool:
        """Return whether the client has gone, or has subscribed again."""
        return super().is_cancelled() or not self._readers.is_current(self.consumer, self._number)


class TokenCheckFactory(flight.ServerMiddlewareFactory):  # type: ignore[misc]  # no types
    """Refuses requests without a valid token."""

    def __init__(self, tokens: Tokens, readers: Readers) -> None:
        super().__init__()
        self._tokens = tokens
        self._readers = readers

    def start_call(self, _info: Any, headers: Any) -> None:
        """Check the header of a request; returns no middleware."""
        values = headers.get(AUTHORIZATION, ())
        given = [value.removeprefix(_SCHEME) for value in values if value.startswith(_SCHEME)]
        if not given:
            self._readers.on_refused("missing_tokens")
            message = "a token is required; name its file with --token-file"
            raise flight.FlightUnauthenticatedError(message)
        if not self._tokens.accept(given[0]):
            self._readers.on_refused("wrong_tokens")
            message = "the token is wrong; both sides need the same token file"
            raise flight.FlightUnauthenticatedError(message)


def connection_of(context: Any) -> str:
    """Return the name of the connection of a request, which ``forwarder.py`` chose."""
    return str(context.peer()).removeprefix(_PEER)


def _consumer(body: bytes) -> str | None:
    try:
        consumer = request_fields(body).get("consumer")
    except StreamError as error:
        raise flight.FlightServerError(str(error)) from error
    return None if consumer is None else str(consumer)


def _undescribed() -> flight.FlightUnavailableError:
    # A client that has connected again without noticing has to begin again.
    return flight.FlightUnavailableError("describe must be the first request of a connection")


def ensure_small(body: bytes) -> None:
    """Refuse a request that is larger than a connection may hold.

    Raises:
        FlightServerError: it is.
    """
    if len(body) > MAX_REQUEST_BYTES:
        message = f"the request has {len(body)} bytes: expected at most {MAX_REQUEST_BYTES}"
        raise flight.FlightServerError(message)
