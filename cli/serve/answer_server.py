"""The Flight server of answers: one flight for each, pulled from a position on.

It listens on a unix socket, to which ``capture/log/remote/forwarder.py`` forwards the connections
of the TCP listener. A ticket is a JSON object:

- ``query``: the answer.
- ``after``: a position, which came as the metadata of a batch: pull the rows behind it. ``"end"``
  stands for the position behind all rows that there are. Without it, pulling begins with the first
  row.
- ``follow``: whether to go on with rows that appear later, until the client leaves.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as flight

from gscope.capture.log.remote.server import TokenCheckFactory, connection_of, ensure_small
from gscope.capture.log.server import STOP_SECONDS
from gscope.cli.serve.answer_parts import (
    Position,
    batches_of,
    count_rows,
    end_of,
    find_answers,
    schema_of,
    unread,
)
from gscope.errors import GscopeError
from gscope.queries.did_you_mean import suggestion
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.socket_address import SocketAddress
from gscope.queries.streams.flight_requests import request_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gscope.capture.log.remote.credentials import Tokens
    from gscope.capture.log.remote.readers import Readers
    from gscope.cli.serve.answer_parts import Part

LOOK_S = 0.25
"""Seconds between two looks for new files, and whether a client that follows has left."""

_FIELDS = {"query": str, "after": str, "follow": bool}


class AnswerServer(flight.FlightServerBase):  # type: ignore[misc]  # pyarrow has no types
    """Serves the answers in ``folder`` from its construction until ``stop``.

    Args:
        folder: the folder that runs write answers to.
        path: where the unix socket is made.
        tokens: the tokens that are accepted.
        readers: notes who has presented a token.

    Attributes:
        rows: the rows that were sent.
        requests: the requests for rows.

    Raises:
        GscopeError: the socket cannot be made.
    """

    def __init__(self, folder: Path, path: Path, tokens: Tokens, readers: Readers) -> None:
        self._folder = folder
        self._readers = readers
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self.rows = 0
        self.requests = 0
        self._address = SocketAddress(path)
        try:
            super().__init__(
                self._address.location, middleware={"token": TokenCheckFactory(tokens, readers)}
            )
        except (OSError, pa.ArrowException) as error:
            self._address.close()
            message = f"cannot listen on {path}: {error}"
            raise GscopeError(message) from error

    def list_flights(self, context: Any, _criteria: bytes) -> Iterator[Any]:
        """Return a flight for each answer."""
        self._readers.on_request(connection_of(context))
        with _client_errors():
            return iter([_info(query, parts) for query, parts in self._answers().items()])

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """Return the flight of the answer that the path of ``descriptor`` names."""
        self._readers.on_request(connection_of(context))
        with _client_errors():
            return _info(*self._named(_query_of(descriptor)))

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """Return the columns of the answer that the path of ``descriptor`` names."""
        self._readers.on_request(connection_of(context))
        with _client_errors():
            _, parts = self._named(_query_of(descriptor))
            return flight.SchemaResult(schema_of(parts[-1]))

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Return the rows that a ticket asks for."""
        self._readers.on_request(connection_of(context))
        ensure_small(ticket.ticket)
        with _client_errors():
            fields = _checked(request_fields(ticket.ticket))
            query, parts = self._named(fields["query"])
            after = None
            if fields.get("after") == "end":
                after = end_of(parts)
            elif "after" in fields:
                after = Position.parse(query, fields["after"])
            waiting = unread(parts, after)
            columns = schema_of(_next_part(waiting.parts) or parts[-1])
        with self._lock:
            self.requests += 1
        return flight.GeneratorStream(
            columns,
            self._rows(context, query, columns, after, follows=fields.get("follow", False)),
        )

    def stop(self) -> None:
        """End; requests that are being answered have ``STOP_SECONDS``."""
        self._ending.set()
        ending = threading.Thread(target=self.shutdown, daemon=True)
        ending.start()
        ending.join(STOP_SECONDS)
        self._address.close()

    def _rows(
        self,
        context: Any,
        query: str,
        columns: pa.Schema,
        after: Position | None,
        *,
        follows: bool,
    ) -> Iterator[tuple[pa.RecordBatch, bytes]]:
        """Yield rows with the position after them; end where the columns change."""
        while not self._ending.is_set() and not context.is_cancelled():
            with _client_errors():
                waiting = unread(self._answers().get(query, ()), after)
                for part, begin in waiting.parts:
                    if not schema_of(part).equals(columns) and count_rows(part) > begin:
                        return
                    for batch, position in batches_of(part, begin):
                        if self._ending.is_set():
                            return
                        yield batch.cast(columns), str(position).encode()
                        after = position
                        with self._lock:
                            self.rows += batch.num_rows
                if waiting.gap:
                    raise GscopeError(waiting.gap)
            if not follows:
                return
            self._ending.wait(LOOK_S)

    def _answers(self) -> Mapping[str, tuple[Part, ...]]:
        return find_answers(self._folder)

    def _named(self, query: str) -> tuple[str, tuple[Part, ...]]:
        """Return an answer and its files.

        Raises:
            GscopeError: there is none of that name.
        """
        answers = self._answers()
        if query not in answers:
            available = f"available: {', '.join(answers)}" if answers else "there is none yet"
            message = f"unknown answer {query!r:.100}; {suggestion(query, answers, available)}"
            raise GscopeError(message)
        return query, answers[query]


def _next_part(waiting: tuple[tuple[Part, int], ...]) -> Part | None:
    """Return the file of the first row that is waiting; None if no row is."""
    return next((part for part, begin in waiting if count_rows(part) > begin), None)


def _info(query: str, parts: tuple[Part, ...]) -> Any:
    ticket = flight.Ticket(json.dumps({"query": query}).encode())
    return flight.FlightInfo(
        schema_of(parts[-1]),
        flight.FlightDescriptor.for_path(query),
        [flight.FlightEndpoint(ticket, [])],
        sum(map(count_rows, parts)),
        sum(part.path.stat().st_size for part in parts),
    )


def _query_of(descriptor: Any) -> str:
    if descriptor.descriptor_type == flight.DescriptorType.PATH and len(descriptor.path) == 1:
        return str(descriptor.path[0].decode(errors="replace"))
    message = (
        "expected the name of an answer as the path; commands, such as those of Flight SQL, are not"
        " served"
    )
    raise GscopeError(message)


def _checked(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a ticket.

    Raises:
        GscopeError: one is unknown, missing, or of another type.
    """
    for name, value in fields.items():
        if name not in _FIELDS or type(value) is not _FIELDS[name]:
            message = (
                f"invalid ticket: {name!r:.100}; expected query and after as text, and follow as"
                " true or false"
            )
            raise GscopeError(message)
    if "query" not in fields:
        message = "invalid ticket: query, the name of an answer, is missing"
        raise GscopeError(message)
    return fields


@contextmanager
def _client_errors() -> Iterator[None]:
    """Raise what went wrong as an error that the client gets as one sentence."""
    try:
        yield
    except GscopeError as error:
        raise flight.FlightServerError(str(error)) from error
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, flight.FlightError):
            raise
        reason = os_reason(error) if isinstance(error, OSError) else str(error)
        message = f"cannot read the answers: {reason}"
        raise flight.FlightServerError(message) from error
