"""Rows as JSON in HTTP requests."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope import __version__
from gscope.cli.outlets.outlet import OutletError, RowsRefused, reason_of

if TYPE_CHECKING:
    from gscope.cli.config.destinations import Destination
    from gscope.cli.outlets.outlet import Batch

TIMEOUT_S = 10.0
"""The longest wait for a connection and for each part of an answer, in seconds."""

_REFUSALS = {400, 413, 415, 422}
"""Statuses that say that this request will never be accepted."""

_MOST_READ = 1 << 16


class Webhook:
    """Posts rows to one URL; see ``Outlet``.

    The body is an object with the run, the result, the number of the first row within the result,
    and the rows. The header ``Idempotency-Key`` is the same whenever the same rows are posted.

    Args:
        destination: the URL.
        context: how certificates are verified; None for those that the system trusts.
    """

    MOST_ROWS = 500
    MOST_BYTES = 1 << 20

    def __init__(self, destination: Destination, context: ssl.SSLContext | None = None) -> None:
        self._destination = destination
        self._context = context
        self._connection: http.client.HTTPConnection | None = None
        self._headers = {
            "Content-Type": "application/json",
            "User-Agent": f"gscope/{__version__}",
        }
        if destination.credentials:
            encoded = base64.b64encode(destination.credentials.encode()).decode()
            self._headers["Authorization"] = f"Basic {encoded}"

    def send(self, batch: Batch) -> None:
        """Post a batch; see ``Outlet.send``."""
        body = _body(batch)
        headers = self._headers | {"Idempotency-Key": batch.key}
        is_reused = self._connection is not None
        try:
            status, reason = self._post(body, headers)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
            self.close()
            if not is_reused:
                raise OutletError(_sentence(error)) from error
            # The server has closed a connection that was idle, as it may.
            try:
                status, reason = self._post(body, headers)
            except (OSError, http.client.HTTPException) as again:
                self.close()
                raise OutletError(_sentence(again)) from again
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise OutletError(_sentence(error)) from error
        if 200 <= status < 300:
            return
        sentence = f"HTTP status {status} {reason}".rstrip()
        if status in _REFUSALS:
            raise RowsRefused(sentence, len(batch.block.lines))
        raise OutletError(sentence)

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _post(self, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connected()
        connection.request("POST", self._destination.path, body, headers)
        response = connection.getresponse()
        response.read(_MOST_READ)
        if response.will_close or not response.isclosed():
            self.close()
        return response.status, response.reason

    def _connected(self) -> http.client.HTTPConnection:
        host, port = self._destination.host, self._destination.port
        if self._destination.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
        context = self._context or ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)


def _body(batch: Batch) -> bytes:
    """Return the body of a request; the rows are JSON already."""
    block = batch.block
    head = json.dumps({"run": batch.run, "query": block.query, "first": block.number})
    return head.encode()[:-1] + b', "rows": [' + b", ".join(block.lines) + b"]}\n"


def _sentence(error: OSError | http.client.HTTPException) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT_S:.0f} s"
    if isinstance(error, http.client.RemoteDisconnected):
        return "the server closed the connection without an answer"
    if isinstance(error, OSError):
        return reason_of(error)
    return f"invalid answer: {type(error).__name__}"
