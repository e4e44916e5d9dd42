"""A connection that is cut in the middle."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self

from gscope.capture.log.remote.address import TcpAddress


class Cut:
    """A proxy that resets the connection after some bytes of replies; a context manager."""

    def __init__(self, target: TcpAddress, after: int) -> None:
        self._target, self._after = target, after
        self._server = socket.create_server(("127.0.0.1", 0))
        self.place = TcpAddress("127.0.0.1", self._server.getsockname()[1])
        self._connections: list[socket.socket] = []
        self._pumps: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                self._connections.append(near)
                far = socket.create_connection((self._target.host, self._target.port))
                self._connections.append(far)
                for source, sink, left in ((near, far, 1 << 30), (far, near, self._after)):
                    self._pumps.append(
                        threading.Thread(target=self._pump, args=(source, sink, left))
                    )
                    self._pumps[-1].start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket, left: int) -> None:
        with suppress(OSError):
            while left > 0 and (data := source.recv(min(left, 65_536))):
                sink.sendall(data)
                left -= len(data)
        _shut_down(source)
        _shut_down(sink)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _shut_down(self._server)  # ends accept, which a close alone would not
        self._thread.join()
        for connection in self._connections:
            _shut_down(connection)
        for pump in self._pumps:
            pump.join()
        for each in (self._server, *self._connections):
            each.close()


def _shut_down(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
