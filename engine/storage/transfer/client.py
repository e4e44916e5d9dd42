"""Client of the job's file server, for tasks whose host does not have the run's folder."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as flight

from gscope.queries.streams.flight_errors import FlightErrors, sentence_of

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.engine.storage.transfer.access import FileAccess

FILE_S = 600.0
"""Seconds within which a whole file must be read or sent."""

CALL_S = 60.0
"""Seconds within which any other request must be answered."""

PIECE_BYTES = 1 << 20
"""Bytes of a file in one message."""

MAX_MESSAGE_BYTES = 64 << 20

PIECES = pa.schema([pa.field("bytes", pa.binary(), nullable=False)])


class FileClient:
    """A connection to the job's file server.

    Args:
        access: where it is, and what it asks for.
    """

    def __init__(self, access: FileAccess) -> None:
        self._access = access
        options: dict[str, Any] = {}
        if access.certificate:
            options["tls_root_certs"] = access.certificate.encode()
        self._client = flight.connect(
            access.location,
            generic_options=[("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)],
            **options,
        )

    def read(
        self, path: str, columns: list[str] | None, groups: list[int] | None = None
    ) -> pa.Table:
        """Return rows of a Parquet file.

        Args:
            path: the file.
            columns: the columns, in this order; None for all.
            groups: the row groups, in this order; None for all.

        Raises:
            StreamError: the server refused, or does not answer.
        """
        ticket = self._request(path, columns=columns, row_groups=groups)
        with self._errors(path):
            table = self._client.do_get(flight.Ticket(ticket), self._options(FILE_S)).read_all()
        return table if columns is None else table.select(columns)

    def row_counts(self, path: str) -> list[int]:
        """Return the number of rows of each row group of a Parquet file.

        Raises:
            StreamError: the server refused, or does not answer.
        """
        with self._errors(path):
            action = flight.Action("rows", self._request(path))
            (result,) = self._client.do_action(action, self._options(CALL_S))
            return [int(rows) for rows in json.loads(result.body.to_pybytes())]

    def write(self, local: Path, path: str) -> None:
        """Send a whole file, which must not exist at ``path`` yet.

        Raises:
            StreamError: the server refused, or does not answer.
        """
        size = local.stat().st_size
        command = self._request(path, bytes=size)
        with self._errors(path), local.open("rb") as file:
            descriptor = flight.FlightDescriptor.for_command(command)
            writer, _ = self._client.do_put(descriptor, PIECES, self._options(FILE_S))
            with writer:
                while piece := file.read(PIECE_BYTES):
                    pieces = pa.array([piece], pa.binary())
                    writer.write_batch(pa.record_batch([pieces], schema=PIECES))

    def _request(self, path: str, **fields: object) -> bytes:
        relative = PurePosixPath(path).relative_to(self._access.root)
        return json.dumps({"file": str(relative), **fields}).encode()

    def _options(self, timeout_s: float) -> flight.FlightCallOptions:
        headers = [(b"authorization", f"Bearer {self._access.token}".encode())]
        return flight.FlightCallOptions(timeout=timeout_s, headers=headers)

    def _errors(self, path: str) -> _TransferErrors:
        return _TransferErrors(self._access.location, path)


class _TransferErrors(FlightErrors):
    """Context that turns errors of Flight into ``StreamError``, with the file."""

    def __init__(self, location: str, path: str) -> None:
        self._location = location
        self._path = path

    def refusal(self, error: BaseException) -> str:
        """Return what the server says."""
        return (
            f"the job at {self._location} does not give or take {self._path}: {sentence_of(error)}"
        )

    def silence(self, error: BaseException) -> str:
        """Return the error of a server that does not answer."""
        return f"the job at {self._location} does not answer: {sentence_of(error)}"
