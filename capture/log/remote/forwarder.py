"""Forwards TCP connections, after TLS, to the Flight server on a unix socket of this process.

Arrow's server cannot take over an open socket, bounds neither connections nor requests, and gives
up dead peers after hours. So a thread of its own accepts connections here: at most
``MAX_CONNECTIONS``, and ``MAX_OF_HOST`` from one host; each must finish its handshake, present a
token, and keep reading within seconds.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import socket
import ssl
import threading
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.capture.log.remote.request_bound import TOO_MANY, RequestBound
from gscope.queries.run_folder.socket_address import SocketAddress

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.capture.log.remote.listener import Listener
    from gscope.capture.log.remote.readers import Readers

MAX_CONNECTIONS = 64
MAX_OF_HOST = 16

HANDSHAKE_S = 10.0
"""Seconds for the handshake of TLS."""

TOKEN_S = 20.0
"""Seconds from the handshake until the first request with a valid token."""

MAX_UNPROVEN = 16
"""Limit of the requests of a connection before one has a valid token: each delays captures."""

CLOSE_S = 2.0
"""Seconds in which a peer may take the last replies."""

UNREAD_S = 20
"""Seconds after which a peer that acknowledges no data is disconnected."""

REQUEST_BYTES_PER_S = 256 << 10
"""How fast a peer may send: requests are small, and reading frames takes time from captures."""

_CHUNK_BYTES = 1 << 20
_REQUEST_CHUNK_BYTES = 16 << 10
_CLOSING_TURNS = 4
"""Turns of the loop in which transports that were aborted close their sockets."""

_FULL_S = 1.0
"""Pause after this process has run out of descriptors."""


class Forwarder:
    """Accepts connections from its construction until ``stop``, in a thread of its own.

    Args:
        listener: the listening socket, which the caller closes after ``stop``.
        server: the path of the unix socket of the server.
        readers: notes who connects, and knows who has presented a token.

    Raises:
        StreamError: the folder of ``server`` cannot be opened.
    """

    def __init__(self, listener: Listener, server: Path, readers: Readers) -> None:
        self._listener = listener
        self._server = SocketAddress(server)
        self._readers = readers
        self._hosts: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._accepting = self._loop.create_task(self._accept())
        self._thread = threading.Thread(target=self._run, name="remote connections", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End all connections, and wait for the thread; the server must have been stopped.

        Peers have ``CLOSE_S`` to take the last replies.
        """
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._accepting.cancel)
        self._thread.join()
        self._server.close()

    def _run(self) -> None:
        try:
            with suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._accepting)
            self._loop.run_until_complete(self._end_connections())
        finally:
            self._loop.close()

    async def _end_connections(self) -> None:
        if self._tasks:
            _, unfinished = await asyncio.wait(self._tasks, timeout=CLOSE_S)
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)
        for _ in range(_CLOSING_TURNS):
            await asyncio.sleep(0)

    async def _accept(self) -> None:
        while True:
            try:
                connection, address = await self._loop.sock_accept(self._listener.socket)
            except OSError:
                # Descriptors are used up, or the peer has gone already.
                await asyncio.sleep(_FULL_S)
                continue
            host = host_of(address[0])
            if len(self._tasks) >= MAX_CONNECTIONS or self._hosts[host] >= MAX_OF_HOST:
                self._readers.on_refused("too_many_connections")
                connection.close()
                continue
            self._hosts[host] += 1
            task = self._loop.create_task(self._connect(connection, _shown(address)))
            self._tasks.add(task)
            task.add_done_callback(functools.partial(self._on_done, host))

    def _on_done(self, host: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]

    async def _connect(self, connection: socket.socket, peer: str) -> None:
        """Serve one connection to its end."""
        _watch(connection)
        try:
            peer_reader, peer_writer = await self._shake_hands(connection)
        except (OSError, ssl.SSLError, TimeoutError):
            connection.close()
            self._readers.on_refused("failed_handshakes")
            return
        name = ""
        try:
            reader, writer, name = await self._dial()
            self._readers.on_connected(name, peer)
            await self._forward(name, (peer_reader, peer_writer), (reader, writer))
        except OSError:
            if not name:
                self._readers.on_refused("unserved_connections")
        finally:
            peer_writer.transport.abort()
            self._readers.on_disconnected(name)

    async def _shake_hands(
        self, connection: socket.socket
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader = asyncio.StreamReader(_REQUEST_CHUNK_BYTES, self._loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=self._loop)
        connection.setblocking(False)
        tls = self._listener.tls
        transport, _ = await self._loop.connect_accepted_socket(
            lambda: protocol,
            connection,
            ssl=tls,
            ssl_handshake_timeout=HANDSHAKE_S if tls is not None else None,
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, self._loop)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str]:
        """Connect to the server; return the streams, and the name that the server sees."""
        dialled = socket.socket(socket.AF_UNIX)
        try:
            dialled.setblocking(False)
            # The kernel chooses a free name, by which requests are attributed to this connection.
            dialled.bind("")
            name = dialled.getsockname()[1:].decode()
            await self._loop.sock_connect(dialled, self._server.path)
            reader, writer = await asyncio.open_unix_connection(sock=dialled, limit=_CHUNK_BYTES)
        except BaseException:
            dialled.close()
            raise
        return reader, writer, name

    async def _forward(
        self,
        name: str,
        peer: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Forward both ways until either side closes, or breaks a rule."""
        bound = RequestBound()
        replies = asyncio.ensure_future(_replies(server[0], peer[1], bound))
        ways = {
            replies,
            asyncio.ensure_future(self._requests(name, peer[0], server[1], bound)),
            asyncio.ensure_future(self._await_token(name)),
        }
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if replies in done:
                await _close(peer[1])
        finally:
            server[1].transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _requests(
        self,
        name: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        bound: RequestBound,
    ) -> None:
        while data := await reader.read(_REQUEST_CHUNK_BYTES):
            refusal = bound.refusal(data)
            if bound.requests > MAX_UNPROVEN and not self._readers.has_presented_token(name):
                refusal = TOO_MANY
            if refusal is not None:
                self._readers.on_refused(refusal)
                return
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(len(data) / REQUEST_BYTES_PER_S)

    async def _await_token(self, name: str) -> None:
        """Return when the connection has had its time without presenting a token."""
        await asyncio.sleep(TOKEN_S)
        if self._readers.has_presented_token(name):
            await asyncio.Event().wait()
        self._readers.on_refused("silent_connections")


async def _replies(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bound: RequestBound
) -> None:
    while data := await reader.read(_CHUNK_BYTES):
        bound.on_replies(data)
        writer.write(data)
        await writer.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close a connection once the peer has taken everything, or after ``CLOSE_S``."""
    writer.close()
    with suppress(OSError, TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), CLOSE_S)


def host_of(address: str) -> str:
    """Return what counts as one host: an IPv4 address, or the /64 of an IPv6 address."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


def _shown(address: tuple[str, int]) -> str:
    host = address[0].removeprefix("::ffff:")
    return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"


def _watch(connection: socket.socket) -> None:
    """Let the kernel give up a peer that is gone, or that does not read."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, UNREAD_S // 2)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, UNREAD_S // 4)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_S * 1000)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
