"""The log's Arrow Flight server on a unix socket: subscriptions, acknowledgements, counters.

``do_get`` takes a ticket, JSON ``{"cursors": {stream: next sequence number, …}}``, and streams
record batches with one binary column ``message`` (records of ``streams/wire.py``) as they are
written, until all these streams have ended or the log is closed. Actions: ``acknowledge`` with the
body ``{"consumer": name, "cursors": {…}}``, ``punctuate`` with ``{"wanted": {stream: {name of a
promise: bound, …}, …}}`` (see ``Demands``), ``streams``, ``counters``, ``ping``. The socket's
folder is private, so who may connect is who may read the folder.
"""

from __future__ import annotations

import dataclasses
import json
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as flight

from gscope.capture.heartbeats.demands import Demands
from gscope.capture.log.os_errors import plain_errors
from gscope.errors import StreamError
from gscope.queries.run_folder.socket_address import SocketAddress
from gscope.queries.streams.wire import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gscope.capture.log.log import StreamLog

MESSAGE_SCHEMA = pa.schema([pa.field("message", pa.binary(), nullable=False)])

STOP_SECONDS = 2.0
"""How long ``LogServer.stop`` waits for clients to take what was sent to them."""

MAX_SUBSCRIPTIONS = 8
"""Each has a thread of its own here, even if its client has stopped reading."""

_CANCEL_CHECK_S = 0.5
"""Seconds that a subscription keeps its thread at most after its client has gone."""


class LogServer(flight.FlightServerBase):  # type: ignore[misc]  # pyarrow has no types
    """Serves ``log`` on the unix socket ``path`` from its construction until ``shutdown``.

    What clients send is checked; a wrong ticket or action is an error for them and nothing here.

    Raises:
        StreamError: the socket cannot be made.
    """

    def __init__(self, log: StreamLog, path: Path, demands: Demands | None = None) -> None:
        self.log = log
        self._counting = threading.Lock()
        self._subscriptions = 0
        self.demands = demands or Demands(log.streams, is_served=False)
        with plain_errors("replace the socket", path):
            path.unlink(missing_ok=True)
        self._address = SocketAddress(path)
        try:
            super().__init__(self._address.location)
        except (OSError, pa.ArrowException) as error:
            self._address.close()
            message = f"cannot listen on {path}: {error}"
            raise StreamError(message) from error

    def stop(self) -> None:
        """End: the log must have been closed, so that no subscription is waiting.

        A client that has stopped reading would hold the server up for ever; after ``STOP_SECONDS``
        it is left to the end of the process.
        """
        ending = threading.Thread(target=self.shutdown, daemon=True)
        ending.start()
        ending.join(STOP_SECONDS)
        self._address.close()

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Subscribe; see the module."""
        with _client_errors():
            cursors = _cursors(_parsed(ticket.ticket).get("cursors"))
            self.log.read(cursors, timeout_s=0)
        return flight.GeneratorStream(MESSAGE_SCHEMA, self._follow(context, cursors))

    def do_action(self, _context: Any, action: Any) -> Any:
        """Run an action; see the module."""
        handler = _ACTIONS.get(action.type)
        if handler is None:
            message = f"unknown action {action.type!r}; available: {sorted(_ACTIONS)}"
            raise flight.FlightServerError(message)
        with _client_errors():
            return [json.dumps(handler(self, action.body.to_pybytes())).encode()]

    def list_actions(self, _context: Any) -> Any:
        """Return the actions there are."""
        return [(name, handler.__doc__) for name, handler in _ACTIONS.items()]

    def _follow(self, context: Any, cursors: dict[str, int]) -> Iterator[pa.RecordBatch]:
        with self._counting:
            if self._subscriptions >= MAX_SUBSCRIPTIONS:
                message = f"too many subscriptions: expected at most {MAX_SUBSCRIPTIONS}"
                raise flight.FlightServerError(message)
            self._subscriptions += 1
        try:
            yield from self._messages(context, cursors)
        finally:
            with self._counting:
                self._subscriptions -= 1

    def _messages(self, context: Any, cursors: dict[str, int]) -> Iterator[pa.RecordBatch]:
        log = self.log
        while not context.is_cancelled():
            with _client_errors():
                messages = log.read(cursors, timeout_s=_CANCEL_CHECK_S)
            if messages:
                for message in messages:
                    cursors[message.stream] = message.sequence + 1
                records = pa.array([encode(message) for message in messages], pa.binary())
                yield pa.record_batch([records], schema=MESSAGE_SCHEMA)
            elif log.is_closed or log.is_read(cursors):
                return


def _acknowledge(server: LogServer, body: bytes) -> object:
    """Record what a consumer no longer needs."""
    fields = _parsed(body)
    server.log.acknowledge(str(fields.get("consumer")), _cursors(fields.get("cursors")))
    return {}


def _punctuate(server: LogServer, body: bytes) -> object:
    """Request heartbeats of streams as soon as they can promise the given bounds."""
    wanted = _parsed(body).get("wanted")
    if not isinstance(wanted, dict):
        message = f"invalid wanted: expected an object of promises by stream, got {wanted!r:.100}"
        raise StreamError(message)
    server.demands.ask({stream: _bounds(promises) for stream, promises in wanted.items()})
    return {}


def _lease(server: LogServer, body: bytes) -> object:
    """Keep batches from being shed until the consumer leases others; return those already gone."""
    fields = _parsed(body)
    return server.log.lease(str(fields.get("consumer")), _sequences(fields.get("batches")))


def _streams(server: LogServer, _body: bytes) -> object:
    """Return the names of all streams."""
    return list(server.log.streams)


def _counters(server: LogServer, _body: bytes) -> object:
    """Return the counters of the log."""
    return dataclasses.asdict(server.log.stats)


def _ping(_server: LogServer, _body: bytes) -> object:
    """Answer, to show that the daemon listens."""
    return {}


_ACTIONS: dict[str, Callable[[LogServer, bytes], object]] = {
    "acknowledge": _acknowledge,
    "lease": _lease,
    "punctuate": _punctuate,
    "streams": _streams,
    "counters": _counters,
    "ping": _ping,
}


class _client_errors:
    """Turn a ``StreamError`` of the body into the Flight error that clients get as a sentence."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, StreamError):
            raise flight.FlightServerError(str(error)) from error


def _parsed(body: bytes) -> dict[str, object]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        message = "the request is not JSON"
        raise StreamError(message) from error
    if not isinstance(fields, dict):
        message = "the request is not a JSON object"
        raise StreamError(message)
    return fields


def _bounds(value: object) -> dict[str, int]:
    if not isinstance(value, dict) or any(type(bound) is not int for bound in value.values()):
        message = f"invalid promises: expected an object of bounds, got {value!r:.100}"
        raise StreamError(message)
    return value


def _cursors(value: object) -> dict[str, int]:
    if not isinstance(value, dict) or any(type(cursor) is not int for cursor in value.values()):
        message = f"invalid cursors: expected an object of sequence numbers, got {value!r:.100}"
        raise StreamError(message)
    return value


def _sequences(value: object) -> dict[str, list[int]]:
    if not isinstance(value, dict) or not all(
        isinstance(numbers, list) and all(type(number) is int for number in numbers)
        for numbers in value.values()
    ):
        message = (
            f"invalid batches: expected an object of lists of sequence numbers, got {value!r:.100}"
        )
        raise StreamError(message)
    return value
