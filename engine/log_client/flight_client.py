"""Client of the stream log's Arrow Flight server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

import pyarrow.flight as flight

from gscope.errors import DisconnectedError, StreamError
from gscope.queries.run_folder.lease_file import write_leases
from gscope.queries.run_folder.socket_address import SocketAddress
from gscope.queries.streams.flight_errors import FlightErrors, sentence_of
from gscope.queries.streams.leases import LeaseReply
from gscope.queries.streams.wire import decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from gscope.queries.streams.leases import AnsweredTimes
    from gscope.queries.streams.messages import Message


MAX_ROWS_AT_ONCE = 1 << 16
"""Rows of one message of Flight."""


class LogClient:
    """A connection to the daemon whose socket is ``path``; a context manager.

    Methods may be called from several threads.

    Raises:
        StreamError: the folder of the socket cannot be opened. A missing daemon shows on first use.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._address = SocketAddress(path)
        self._client = flight.connect(self._address.location)

    def subscribe(self, cursors: Mapping[str, int]) -> Iterator[list[Message]]:
        """Yield messages of the streams in ``cursors`` as they are written.

        Starts at the sequence numbers of ``cursors``. Ends when all these streams have ended, or
        when the daemon stops.

        Raises:
            StreamError: a cursor is invalid.
            DisconnectedError: the daemon is gone.
        """
        with _StreamErrors(self._path):
            ticket = flight.Ticket(json.dumps({"cursors": dict(cursors)}).encode())
            reader = self._client.do_get(ticket)
            try:
                for chunk in reader:
                    yield [decode(record) for record in chunk.data.column(0).to_pylist()]
            finally:
                reader.cancel()

    def punctuate(self, wanted: Mapping[str, Mapping[str, int]]) -> None:
        """Ask for heartbeats of streams as soon as they can promise bounds.

        Args:
            wanted: for each stream, the bounds by the name of the promise.

        Raises:
            StreamError: the daemon refused the request.
            DisconnectedError: the daemon is gone.
        """
        self._act("punctuate", {"wanted": {stream: dict(each) for stream, each in wanted.items()}})

    def acknowledge(self, consumer: str, cursors: Mapping[str, int]) -> None:
        """Report that ``consumer`` needs no message below ``cursors``.

        Raises:
            StreamError: the daemon refused the request.
            DisconnectedError: the daemon is gone.
        """
        self._act("acknowledge", {"consumer": consumer, "cursors": dict(cursors)})

    def lease(
        self,
        consumer: str,
        batches: Mapping[str, Sequence[int]],
        answered: Mapping[str, AnsweredTimes] | None = None,
    ) -> LeaseReply:
        """Keep batches from being shed until ``consumer`` leases others.

        The lease also holds for a daemon that takes over meanwhile.

        Args:
            consumer: the consumer that is about to read the batches.
            batches: the sequence numbers of the batches, by stream.
            answered: by stream, the times that will be answered from these batches.

        Raises:
            StreamError: the daemon refused the request, or is gone.
        """
        write_leases(self._path.parent, consumer, batches)
        times = {s: [each.by_all_ns, each.by_any_ns] for s, each in (answered or {}).items()}
        fields = {
            "consumer": consumer,
            "batches": {s: list(n) for s, n in batches.items()},
            "answered": times,
        }
        return LeaseReply.from_json(self._act("lease", fields))

    def put_answers(
        self,
        stream: str,
        place: tuple[int, int] | None,
        rows: pa.Table,
        bounds: Mapping[str, int],
        lost: Sequence[Mapping[str, Any]] = (),
        *,
        is_last: bool = False,
    ) -> None:
        """Send rows of an answer, which the log keeps for readers on other hosts.

        Args:
            stream: the stream of the answer.
            place: the number of their step, and their number in it, by which a repetition is known;
                None for bounds alone.
            rows: the rows.
            bounds: by the name of a promise, the bound below which no later rows are.
            lost: which rows below these bounds may lack packets; the fields of ``LostRows``.
            is_last: whether the stream ends here.

        Raises:
            StreamError: the daemon refused them.
            DisconnectedError: the daemon is gone.
        """
        command = {
            "stream": stream,
            "place": place,
            "bounds": dict(bounds),
            "lost": [dict(each) for each in lost],
            "is_last": is_last,
        }
        descriptor = flight.FlightDescriptor.for_command(json.dumps(command).encode())
        with _StreamErrors(self._path):
            writer, _ = self._client.do_put(descriptor, rows.schema)
            with writer:
                writer.write_table(rows, MAX_ROWS_AT_ONCE)

    def acknowledge_last(self, consumer: str, cursors: Mapping[str, int]) -> None:
        """Report that ``consumer`` needs nothing more.

        The daemon ends once all consumers have reported this; on a busy machine, before its reply
        is sent. So a daemon that is gone counts as one that received the report.

        Raises:
            StreamError: the daemon refused the request.
        """
        try:
            self.acknowledge(consumer, cursors)
        except DisconnectedError:
            return
        except StreamError:
            if self._answers():
                raise

    def streams(self) -> tuple[str, ...]:
        """Return the names of all streams.

        Raises:
            StreamError: the daemon is gone.
        """
        return tuple(self._act("streams"))

    def counters(self) -> dict[str, int]:
        """Return the counters of the log.

        Raises:
            StreamError: the daemon is gone.
        """
        return dict(self._act("counters"))

    def ping(self) -> None:
        """Check that the daemon answers.

        Raises:
            StreamError: the daemon does not answer.
        """
        self._act("ping")

    def close(self) -> None:
        """Close the connection; harmless when called twice."""
        self._client.close()
        self._address.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _answers(self) -> bool:
        try:
            self.ping()
        except StreamError:
            return False
        return True

    def _act(self, name: str, fields: Mapping[str, object] | None = None) -> Any:
        with _StreamErrors(self._path):
            action = flight.Action(name, json.dumps(fields or {}).encode())
            (result,) = self._client.do_action(action)
            return json.loads(result.body.to_pybytes())


class _StreamErrors(FlightErrors):
    """Context that turns errors of Flight into ``StreamError``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def refusal(self, error: BaseException) -> str:
        """Return what the daemon says."""
        return sentence_of(error)

    def silence(self, error: BaseException) -> str:  # noqa: ARG002  # of all servers
        """Return that there is no answer."""
        return f"the capture daemon at {self._path} does not answer"
