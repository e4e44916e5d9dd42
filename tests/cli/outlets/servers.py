"""Servers for outlets: they count what they accept, and can be killed and started again."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl


class HookServer:
    """Accepts webhooks on a port that stays the same.

    Args:
        context: the certificate of the server; None for HTTP.

    Attributes:
        bodies: the bodies that were accepted, by key.
        keys: the keys of all requests, in order.
        headers: the headers of the last request.
        answers: statuses to answer with instead of 204, first to last.
        swallows: how many requests to accept without an answer.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.bodies: dict[str, Any] = {}
        self.keys: list[str] = []
        self.headers: dict[str, str] = {}
        self.answers: list[int] = []
        self.swallows = 0
        self.port = 0
        self._context = context
        self._server: ThreadingHTTPServer | None = None
        self.start()

    def start(self) -> None:
        """Listen."""
        known = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                opened.append(self.connection)

            def do_POST(self) -> None:
                known.headers = dict(self.headers)
                key = self.headers["Idempotency-Key"]
                known.keys.append(key)
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status = known.answers.pop(0) if known.answers else 204
                if status == 204:
                    assert known.bodies.setdefault(key, body) == body
                if known.swallows:
                    known.swallows -= 1
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        opened: list[socket.socket] = []
        self._opened = opened
        self._server = _Server(("127.0.0.1", self.port), Handler)
        if self._context is not None:
            self._server.socket = self._context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def kill(self) -> None:
        """Close the socket and all connections."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            for each in self._opened:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            self._thread.join()
        self._server = None

    @property
    def rows(self) -> list[tuple[str, int, Any]]:
        """The result, number and row of everything that was accepted, in order."""
        return sorted(
            (
                (body["query"], number, row)
                for body in self.bodies.values()
                for number, row in enumerate(body["rows"], body["first"])
            ),
            key=lambda each: each[:2],
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that go away."""
