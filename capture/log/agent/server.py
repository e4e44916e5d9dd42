"""The control server of an agent: what it offers, captures on request, and its clock.

It listens on a unix socket, to which ``log/remote/forwarder.py`` forwards the connections of the
TCP listener after TLS, with bounds on connections and requests. Every action needs a token; all
take and return one object of JSON:

- ``offer`` with ``{}`` returns an ``Offer``.
- ``begin`` with ``{"capture": name, "request": {…}, "is_known": bool, "is_recording": bool}``
  returns a ``CaptureState`` at once. A client repeats it until the capture serves.
- ``clock`` with ``{"capture": name}`` returns ``{"time_ns": nanoseconds since 1970}``.
- ``end`` with ``{"capture": name}`` ends a capture.
"""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as flight

from gscope.capture.log.os_errors import plain_errors
from gscope.capture.log.remote.server import TokenCheckFactory, connection_of, ensure_small
from gscope.capture.log.server import STOP_SECONDS, client_errors
from gscope.errors import StreamError
from gscope.queries.run_folder.socket_address import SocketAddress
from gscope.queries.streams.event_codec import to_plain
from gscope.queries.streams.flight_requests import request_fields

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gscope.capture.log.agent.board import CaptureBoard
    from gscope.capture.log.agent.messages import Offer
    from gscope.capture.log.remote.credentials import Tokens
    from gscope.capture.log.remote.readers import Readers


class ControlServer(flight.FlightServerBase):  # type: ignore[misc]  # pyarrow has no types
    """Serves on the unix socket ``path`` from its construction until ``stop``.

    Args:
        path: where the socket is made; one that is there is replaced.
        offer: what the agent captures for others.
        board: the captures.
        tokens: the tokens that are accepted.
        readers: notes who has presented a token.

    Raises:
        StreamError: the socket cannot be made.
    """

    def __init__(
        self, path: Path, offer: Offer, board: CaptureBoard, tokens: Tokens, readers: Readers
    ) -> None:
        self._offer = offer
        self._board = board
        self._readers = readers
        self._actions: dict[str, Callable[[dict[str, object]], object]] = {
            "offer": lambda _: to_plain(offer),
            "begin": self._begin,
            "clock": self._clock,
            "end": self._end,
        }
        with plain_errors("replace the socket", path):
            path.unlink(missing_ok=True)
        self._address = SocketAddress(path)
        try:
            super().__init__(
                self._address.location, middleware={"token": TokenCheckFactory(tokens, readers)}
            )
        except (OSError, pa.ArrowException) as error:
            self._address.close()
            message = f"cannot listen on {path}: {error}"
            raise StreamError(message) from error

    def do_action(self, context: Any, action: Any) -> Any:
        """Run an action; see the module."""
        self._readers.on_request(connection_of(context))
        body = action.body.to_pybytes()
        ensure_small(body)
        handler = self._actions.get(action.type)
        if handler is None:
            message = f"unknown action {action.type!r:.100}; available: {sorted(self._actions)}"
            raise flight.FlightServerError(message)
        with client_errors():
            return [json.dumps(handler(request_fields(body))).encode()]

    def list_actions(self, _context: Any) -> Any:
        """Return the actions there are."""
        return [(name, "see the module") for name in self._actions]

    def stop(self) -> None:
        """End; requests that are being answered have ``STOP_SECONDS``."""
        ending = threading.Thread(target=self.shutdown, daemon=True)
        ending.start()
        ending.join(STOP_SECONDS)
        self._address.close()

    def _begin(self, fields: dict[str, object]) -> object:
        state = self._board.begin(
            fields.get("capture"),
            fields.get("request"),
            is_known=fields.get("is_known") is True,
            is_recording=fields.get("is_recording") is True,
        )
        return to_plain(state)

    def _clock(self, fields: dict[str, object]) -> object:
        name = fields.get("capture")
        if name:
            self._board.want(name)
        return {"time_ns": time.time_ns()}

    def _end(self, fields: dict[str, object]) -> object:
        self._board.dismiss(fields.get("capture"))
        return {}
