"""The log's Arrow Flight server on a unix socket: subscriptions, acknowledgements, counters.

``do_get`` takes a ticket, one of two JSON objects:

- ``{"cursors": {stream: next sequence number, …}}`` streams record batches with one binary column
  ``message`` (records of ``streams/wire.py``) as they are written, until all these streams have
  ended or the log is closed.
- ``{"segment": {"stream": name, "sequence": number, "row_groups": [number, …]}}`` streams the rows
  of one batch, for readers that cannot open its file; without ``row_groups`` all of them. A batch
  that was shed or released is an error with ``GONE``.

``do_put`` takes rows of answers where the log has streams for them: its command is ``{"stream":
name, "place": [step, number] or null, "bounds": {name of a promise: bound, …}, "lost":
[``LostRows``, …], "is_last": true or false}``.

Actions: ``describe`` with the body ``{"consumer": name}`` (or ``{}``), which registers a consumer
where the log accepts further ones and returns a ``LogDescription``; ``acknowledge`` with
``{"consumer": name, "cursors": {…}}``; ``deregister`` with ``{"consumer": name}``, for which
nothing is kept from then on; ``punctuate`` with
``{"wanted": {stream: {name of a promise: bound, …}, …}}`` (see ``Demands``); ``lease`` with
``{"consumer": name, "batches": {stream: [number, …], …}, "answered": {stream: [time, time], …}}``
(see ``queries/streams/leases.py``); ``streams``, ``counters``, ``ping``. The socket's folder is
private, so who may connect is who may read the folder.
"""

from __future__ import annotations

import dataclasses
import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.flight as flight

from gscope.capture.heartbeats.demands import Demands
from gscope.capture.log.description import SENSOR, describe_log, describe_streams
from gscope.capture.log.os_errors import plain_errors
from gscope.capture.log.segment_rows import SegmentRows
from gscope.errors import StreamError
from gscope.queries.run_folder.socket_address import SocketAddress
from gscope.queries.streams.event_codec import from_plain
from gscope.queries.streams.flight_requests import request_fields
from gscope.queries.streams.leases import answered_from_json
from gscope.queries.streams.losses import LostRows, losses_of
from gscope.queries.streams.wire import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gscope.capture.log.description import LftaDescription
    from gscope.capture.log.log import StreamLog

MESSAGE_SCHEMA = pa.schema([pa.field("message", pa.binary(), nullable=False)])

MAX_MESSAGES = 1024
"""Limit of the messages of one record batch."""

STOP_SECONDS = 2.0
"""How long ``LogServer.stop`` waits for clients to take what was sent to them."""

MAX_SUBSCRIPTIONS = 8
"""Each has a thread of its own here, even if its client has stopped reading."""

MAX_PULLS = 8
"""Segments that are read at the same time; each keeps a file open and a thread busy."""

PULL_WAIT_S = 10.0
"""Seconds that a further one waits for its turn."""

GONE = b"gone"
"""The ``extra_info`` of the error for a segment that is not retained any more."""

_CANCEL_CHECK_S = 0.5
"""Seconds that a subscription keeps its thread at most after its client has gone."""


class Answers(Protocol):
    """What takes the rows of answers; see ``capture/answers/answer_writer.py``."""

    def write(
        self,
        stream: str,
        place: tuple[int, int] | None,
        rows: pa.Table,
        bounds: Mapping[str, int],
        lost: Sequence[LostRows] = (),
        *,
        is_last: bool = False,
    ) -> None:
        """Write a portion of an answer, and what its stream then promises."""


class LogServer(flight.FlightServerBase):  # type: ignore[misc]  # pyarrow has no types
    """Serves ``log`` on the unix socket ``path`` from its construction until ``shutdown``.

    What clients send is checked; a wrong ticket or action is an error for them and nothing here.

    Args:
        log: the log.
        path: where the socket is made; one that is there is replaced.
        demands: takes demands for heartbeats; None if they are not sent on demand.
        lftas: the LFTAs whose streams are in the log, for ``describe``.
        role: ``SENSOR`` or ``RELAY``, for ``describe``.
        answers: takes rows of answers; None if the log has no streams for them.

    Raises:
        StreamError: the socket cannot be made.
    """

    def __init__(
        self,
        log: StreamLog,
        path: Path,
        demands: Demands | None = None,
        *,
        lftas: tuple[LftaDescription, ...] = (),
        role: str = SENSOR,
        answers: Answers | None = None,
        **options: Any,
    ) -> None:
        self.log = log
        self.lftas = lftas
        self.role = role
        self._answers = answers
        self._subscribing = _Limit("subscriptions", MAX_SUBSCRIPTIONS)
        self._pulling = _Limit("segments at the same time", MAX_PULLS, PULL_WAIT_S)
        self.demands = demands or Demands(log.streams, is_served=False)
        with plain_errors("replace the socket", path):
            path.unlink(missing_ok=True)
        self._address = SocketAddress(path)
        try:
            super().__init__(self._address.location, **options)
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
        """Subscribe, or read a segment; see the module."""
        with client_errors():
            fields = request_fields(ticket.ticket)
            if "segment" in fields:
                return self.segment(context, *_segment(fields["segment"]))
            return self.subscription(context, fields, _cursors(fields.get("cursors")))

    def do_put(self, _context: Any, descriptor: Any, reader: Any, _writer: Any) -> None:
        """Take rows of an answer; see the module."""
        with client_errors():
            if self._answers is None:
                message = "this log takes no answers"
                raise StreamError(message)
            fields = request_fields(descriptor.command)
            self._answers.write(
                str(fields.get("stream")),
                _place(fields.get("place")),
                reader.read_all(),
                _bounds(fields.get("bounds")),
                _lost(fields.get("lost")),
                is_last=fields.get("is_last") is True,
            )

    def subscription(
        self, context: Any, _fields: dict[str, object], cursors: dict[str, int]
    ) -> Any:
        """Return the messages from ``cursors`` on.

        Raises:
            StreamError: a stream is unknown, or a cursor is not retained.
        """
        self.log.read(cursors, timeout_s=0)
        return flight.GeneratorStream(MESSAGE_SCHEMA, self._follow(context, cursors))

    def segment(
        self, context: Any, stream: str, sequence: int, row_groups: list[int] | None
    ) -> Any:
        """Return the rows of a batch, or of some of its row groups.

        Raises:
            StreamError: the stream or a row group is unknown, or the segment cannot be read.
        """
        file = self.log.open_segment(stream, sequence)
        if file is None:
            message = f"batch {sequence} of stream {stream!r} is not retained"
            raise flight.FlightServerError(message, GONE)
        rows = SegmentRows(file, Path(file.name), row_groups)
        return flight.GeneratorStream(rows.schema, self.rows(context, rows))

    def do_action(self, _context: Any, action: Any) -> Any:
        """Run an action; see the module."""
        handler = self.actions.get(action.type)
        if handler is None:
            message = f"unknown action {action.type!r:.100}; available: {sorted(self.actions)}"
            raise flight.FlightServerError(message)
        with client_errors():
            return [json.dumps(handler(self, action.body.to_pybytes())).encode()]

    def list_actions(self, _context: Any) -> Any:
        """Return the actions there are."""
        return [(name, handler.__doc__) for name, handler in self.actions.items()]

    @property
    def actions(self) -> dict[str, Callable[[LogServer, bytes], object]]:
        """The actions that clients may run, by name."""
        return _ACTIONS

    def _follow(self, context: Any, cursors: dict[str, int]) -> Iterator[pa.RecordBatch]:
        with self._subscribing:
            yield from self._messages(context, cursors)

    def rows(self, _context: Any, rows: SegmentRows) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a segment."""
        try:
            with self._pulling, client_errors():
                yield from rows.batches()
        finally:
            rows.close()

    def messages_sent(self, _context: Any, _size_bytes: int) -> None:
        """Note that messages are sent to a client."""

    def _messages(self, context: Any, cursors: dict[str, int]) -> Iterator[pa.RecordBatch]:
        log = self.log
        while not context.is_cancelled():
            with client_errors():
                messages = log.read(cursors, MAX_MESSAGES, _CANCEL_CHECK_S)
            if messages:
                for message in messages:
                    cursors[message.stream] = message.sequence + 1
                records = pa.array([encode(message) for message in messages], pa.binary())
                self.messages_sent(context, records.nbytes)
                yield pa.record_batch([records], schema=MESSAGE_SCHEMA)
            elif log.is_closed or log.is_read(cursors):
                return


class _Limit:
    """A context that at most ``most`` threads are in; a further one is refused.

    Args:
        what: what is limited, for the message.
        most: how many.
        wait_s: seconds that a further one waits before it is refused.
    """

    def __init__(self, what: str, most: int, wait_s: float = 0.0) -> None:
        self._what = what
        self._most = most
        self._wait_s = wait_s
        self._free = threading.Semaphore(most)

    def __enter__(self) -> None:
        if not self._free.acquire(timeout=self._wait_s):
            message = f"too many {self._what}: expected at most {self._most}"
            raise flight.FlightServerError(message)

    def __exit__(self, *_: object) -> None:
        self._free.release()


def _describe(server: LogServer, body: bytes) -> object:
    """Describe the log, for a consumer if one is named, which registers it."""
    consumer = request_fields(body).get("consumer")
    acknowledged = {} if consumer is None else server.log.register(str(consumer))
    # What answers lack of a restart is in the losses of their heartbeats.
    answers = {stream for each in server.lftas if each.is_answer for stream in each.streams}
    begun = server.log.begun if server.role == SENSOR else {}
    begun = {stream: number for stream, number in begun.items() if stream not in answers}
    streams = describe_streams(server.log.positions, acknowledged, begun)
    return describe_log(server.role, server.log.identity, server.lftas, streams).to_plain()


def _acknowledge(server: LogServer, body: bytes) -> object:
    """Record what a consumer no longer needs."""
    fields = request_fields(body)
    server.log.acknowledge(str(fields.get("consumer")), _cursors(fields.get("cursors")))
    return {}


def _deregister(server: LogServer, body: bytes) -> object:
    """Forget a consumer that registered itself."""
    server.log.deregister(str(request_fields(body).get("consumer")))
    return {}


def _punctuate(server: LogServer, body: bytes) -> object:
    """Request heartbeats of streams as soon as they can promise the given bounds."""
    wanted = request_fields(body).get("wanted")
    if not isinstance(wanted, dict):
        message = f"invalid wanted: expected an object of promises by stream, got {wanted!r:.100}"
        raise StreamError(message)
    server.demands.ask({stream: _bounds(promises) for stream, promises in wanted.items()})
    return {}


def _lease(server: LogServer, body: bytes) -> object:
    """Keep batches from being shed until the consumer leases others; return those already gone.

    Also takes the times that the consumer answers, and returns the limits of streams.
    """
    fields = request_fields(body)
    consumer, batches = str(fields.get("consumer")), _sequences(fields.get("batches"))
    try:
        answered = answered_from_json(fields.get("answered", {}))
    except ValueError as error:
        raise StreamError(str(error)) from error
    return server.log.lease_answered(consumer, batches, answered).to_json()


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
    "describe": _describe,
    "acknowledge": _acknowledge,
    "deregister": _deregister,
    "lease": _lease,
    "punctuate": _punctuate,
    "streams": _streams,
    "counters": _counters,
    "ping": _ping,
}


class client_errors:
    """Turn a ``StreamError`` of the body into the Flight error that clients get as a sentence."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, StreamError):
            raise flight.FlightServerError(str(error)) from error


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


def _lost(value: object) -> tuple[LostRows, ...]:
    try:
        found = tuple(from_plain(LostRows, each) for each in value)  # type: ignore[attr-defined]
        return tuple(lost for each in found for lost in losses_of((), (each,)).rows)
    except (TypeError, ValueError, AttributeError) as error:
        message = f"invalid lost rows: {error}"
        raise StreamError(message) from error


def _place(value: object) -> tuple[int, int] | None:
    match value:
        case None:
            return None
        case [int(step), int(number)]:
            return step, number
    message = f"invalid place: expected two numbers, got {value!r:.100}"
    raise StreamError(message)


def _segment(value: object) -> tuple[str, int, list[int] | None]:
    match value:
        case {"stream": str(stream), "sequence": int(sequence), **others} if not others:
            return stream, sequence, None
        case {
            "stream": str(stream),
            "sequence": int(sequence),
            "row_groups": list(groups),
            **others,
        } if not others and all(type(group) is int for group in groups):
            return stream, sequence, groups
    message = (
        "invalid segment: expected a stream, a sequence number and maybe numbers of row groups, "
        f"got {value!r:.100}"
    )
    raise StreamError(message)


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
