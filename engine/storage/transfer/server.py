"""The job's file server: executors read segments, carries and states, and send what they wrote.

``do_get`` takes a ticket ``{"file": path, "columns": [name, …], "row_groups": [number, …]}`` and
streams rows of a Parquet file; null stands for all columns or row groups. ``do_put`` takes a
command ``{"file": path, "bytes": size}`` and the content of a new file in pieces. The action
``rows`` takes ``{"file": path}`` and returns the number of rows of each row group. Paths are
relative to the root. Each request presents the token of the run.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq

from gscope.errors import EngineError, StreamError
from gscope.queries.os_errors import os_reason
from gscope.queries.streams.flight_requests import request_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

ROWS = 1 << 14
"""Rows of a record batch."""

MAX_REQUESTS = 16
"""Files that are read or written at the same time."""

WAIT_S = 300.0
"""Seconds that a further one waits for its turn."""

STOP_S = 2.0

SEGMENTS = "segments"
"""The kind of bytes that executors fetch of the log."""

CARRIED = "carried"
"""The kind of bytes that executors fetch of files that steps have written."""

RETURNED = "returned"
"""The kind of bytes of files that executors send."""

NOTHING_SENT = {SEGMENTS: 0, CARRIED: 0, RETURNED: 0}

_READABLE = re.compile(r"(?:[^/]+/)*(?:log/segments|job/carry|job/outputs)/(?:[^/]+/)*[^/]+")
_SOURCE = re.compile(r"(?:^|/)(log/segments|job/carry|job/outputs)/")
_WRITABLE = re.compile(
    r"(?:[^/]+/)*job/(?:carry|outputs)/(?:[^/]+/)+part-[0-9]{5,}-[0-9a-f]+-[0-9]+\.parquet"
)
"""A new file in the folder of a step, named after the attempt of a task."""


class FileServer(flight.FlightServerBase):  # type: ignore[misc]  # pyarrow has no types
    """Serves the files below ``root`` from its construction until ``stop``.

    Args:
        root: the folder.
        token: what each request presents.
        location: where it listens: a scheme, a host, and a port or 0.
        tls: certificate chain and key, in PEM; None without TLS.

    Raises:
        EngineError: it cannot listen there.
    """

    def __init__(
        self, root: Path, token: str, location: str, tls: tuple[bytes, bytes] | None = None
    ) -> None:
        self._root = root.resolve()
        self._turns = threading.Semaphore(MAX_REQUESTS)
        self._bytes = dict(NOTHING_SENT)
        self._counting = threading.Lock()
        options: dict[str, Any] = {} if tls is None else {"tls_certificates": [tls]}
        try:
            super().__init__(location, middleware={"token": _TokenCheck(token)}, **options)
        except (OSError, pa.ArrowException) as error:
            message = f"cannot serve files of the run at {location}: {error}"
            raise EngineError(message) from error

    def stop(self) -> None:
        """End; a client that has stopped reading is left to the end of the process."""
        ending = threading.Thread(target=self.shutdown, daemon=True)
        ending.start()
        ending.join(STOP_S)

    def bytes_by_kind(self) -> dict[str, int]:
        """Return the bytes so far of ``SEGMENTS``, ``CARRIED`` and ``RETURNED``; for any thread.

        Rows count as the messages of Arrow that hold them, files as their content, both without
        what TLS and HTTP add. Requests that fail count up to there.
        """
        with self._counting:
            return dict(self._bytes)

    def _count(self, kind: str, size_bytes: int) -> None:
        with self._counting:
            self._bytes[kind] += size_bytes

    def do_get(self, _context: Any, ticket: Any) -> Any:
        """Send the rows of a file."""
        with _client_errors():
            fields = request_fields(ticket.ticket)
            path, names = self._path(fields, _READABLE), _names(fields.get("columns"))
            groups = _numbers(fields.get("row_groups"))
            file = pq.ParquetFile(path)
            if groups is not None and not all(0 <= n < file.num_row_groups for n in groups):
                message = f"the file has {file.num_row_groups} row groups, not {groups!r:.100}"
                raise StreamError(message)
        schema = _plain(file.schema_arrow, names)
        found = _SOURCE.search(fields["file"])
        kind = SEGMENTS if found and found[1] == "log/segments" else CARRIED
        return flight.GeneratorStream(schema, self._rows(file, schema, groups, kind))

    def _rows(
        self, file: pq.ParquetFile, schema: pa.Schema, groups: list[int] | None, kind: str
    ) -> Iterator[pa.RecordBatch]:
        with self._turn(), _client_errors(), file:
            chosen = {"columns": schema.names, "row_groups": groups, "use_threads": False}
            for batch in file.iter_batches(ROWS, **chosen):
                sent = batch.cast(schema)
                self._count(kind, pa.ipc.get_record_batch_size(sent))
                yield sent

    def do_put(self, _context: Any, descriptor: Any, reader: Any, _writer: Any) -> None:
        """Write a new file; an incomplete one is removed."""
        with _client_errors():
            fields = request_fields(descriptor.command)
            path, size = self._path(fields, _WRITABLE), fields.get("bytes")
            with self._turn():
                # A folder of the step exists; one for a value of a column is made with its file.
                if path.parent.name.startswith("kb="):
                    path.parent.mkdir(exist_ok=True)
                opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                try:
                    with os.fdopen(opened, "wb") as file:
                        _receive(reader, file, size, partial(self._count, RETURNED))
                except BaseException:
                    path.unlink(missing_ok=True)
                    raise

    def do_action(self, _context: Any, action: Any) -> Any:
        """Return the number of rows of each row group of a file."""
        with _client_errors():
            if action.type != "rows":
                message = f"unknown action {action.type!r:.100}"
                raise StreamError(message)
            path = self._path(request_fields(action.body.to_pybytes()), _READABLE)
            metadata = pq.read_metadata(path)
            groups = range(metadata.num_row_groups)
            return [json.dumps([metadata.row_group(n).num_rows for n in groups]).encode()]

    def _path(self, fields: Mapping[str, Any], allowed: re.Pattern[str]) -> Path:
        """Return the path that a request names.

        Raises:
            StreamError: it is not that of a file which executors may read or write.
        """
        name = fields.get("file")
        if not isinstance(name, str) or ".." in name.split("/") or not allowed.fullmatch(name):
            message = f"the file {name!r:.200} is not one of those that tasks use"
            raise StreamError(message)
        path = self._root / name
        # Links would lead out of the root.
        folder = path.parent if path.parent.exists() else path.parent.parent
        if folder.resolve() != folder or path.is_symlink():
            message = f"the file {name!r:.200} is not in the folder of the run"
            raise StreamError(message)
        return path

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._turns.acquire(timeout=WAIT_S):
            message = f"too many requests: expected at most {MAX_REQUESTS} at the same time"
            raise StreamError(message)
        try:
            yield
        finally:
            self._turns.release()


def _receive(reader: Any, file: Any, size: object, count: Callable[[int], None]) -> None:
    """Write the pieces of a file as they come.

    Raises:
        StreamError: they are more or less than announced.
    """
    received = 0
    for chunk in reader:
        for piece in chunk.data.column(0).to_pylist():
            received += len(piece)
            count(len(piece))
            if not isinstance(size, int) or received > size:
                break
            file.write(piece)
    if received != size:
        message = f"expected a file of {size} bytes, got {received}"
        raise StreamError(message)


def _plain(schema: pa.Schema, names: frozenset[str] | None) -> pa.Schema:
    """Return the columns ``names``, or all, without dictionaries: those of a file differ."""
    fields = (field for field in schema if names is None or field.name in names)
    return pa.schema(
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in fields
    )


def _names(value: object) -> frozenset[str] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        message = f"invalid columns: expected a list of names, got {value!r:.100}"
        raise StreamError(message)
    return frozenset(value)


def _numbers(value: object) -> list[int] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(type(number) is int for number in value):
        message = f"invalid row groups: expected a list of numbers, got {value!r:.100}"
        raise StreamError(message)
    return value


@contextmanager
def _client_errors() -> Iterator[None]:
    """Turn errors of the body into the Flight error that clients get as a sentence."""
    try:
        yield
    except StreamError as error:
        raise flight.FlightServerError(str(error)) from error
    except OSError as error:
        raise flight.FlightServerError(os_reason(error)) from error


class _TokenCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]  # no types
    """Refuses requests without the token."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._expected = f"Bearer {token}".encode()

    def start_call(self, _info: Any, headers: Any) -> None:
        """Check the header of a request; returns no middleware."""
        given = [str(value).encode() for value in headers.get("authorization", ())]
        if not given or not hmac.compare_digest(given[0], self._expected):
            message = "the token is missing or wrong"
            raise flight.FlightUnauthenticatedError(message)
