"""Messages of the log as they come, whichever daemon serves it.

A capture daemon may be killed and started again; its log goes on. So a connection that breaks is no error here: the
inbox waits until the supervisor says that a daemon is there, and reads on behind the last message it handed out.
"""

from __future__ import annotations

import queue
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from gscope.engine.log_client.flight_client import LogClient
from gscope.errors import DisconnectedError, GscopeError, StreamError
from gscope.queries.run_folder.claims_file import write_claims

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gscope.queries.streams.messages import Message


MAX_CHUNKS = 16
"""More wait in the log, which is bounded: a job may stand still for days because nobody takes its answers."""

LOOK_S = 1.0
"""How often a thread with a full inbox looks whether it is to end."""


class Inbox:
    """A subscription for one thread, but for ``renew``; a context manager.

    Args:
        socket: of the daemon.
        cursors: by stream, the first message wanted.
        is_there: set by somebody else whenever a daemon has begun to listen; cleared here.

    Attributes:
        received_ns: when the last of the messages taken last reached this process, since 1970.
    """

    def __init__(self, socket: Path, cursors: Mapping[str, int], is_there: threading.Event) -> None:
        self._socket = socket
        self._cursors = dict(cursors)
        self._is_there = is_there
        self._connection: _Connection | None = None
        self._wanted: Mapping[str, Mapping[str, int]] = {}
        self._claimed: tuple[str, Mapping[str, Sequence[int]]] | None = None
        self._claiming = threading.Lock()
        self.received_ns = 0

    def take(self) -> list[Message]:
        """All messages that have come since the last call; waits for the first.

        Raises:
            StreamError: the daemon refuses.
        """
        while True:
            try:
                messages, self.received_ns = self._connected().take()
            except DisconnectedError:
                self.close()
                continue
            for message in messages:
                self._cursors[message.stream] = message.sequence + 1
            return messages

    def acknowledge(self, consumer: str, cursors: Mapping[str, int]) -> None:
        """Tell that ``consumer`` is done below ``cursors``.

        If nobody hears it the next one says as much.

        Raises:
            StreamError: refused.
        """
        if self._connection is not None:
            with suppress(DisconnectedError):
                self._connection.client.acknowledge(consumer, cursors)

    def claim(
        self, consumer: str, batches: Mapping[str, Sequence[int]]
    ) -> dict[str, tuple[int, ...]]:
        """Keep batches from being shed; those that are gone already. See ``LogClient``.

        A daemon that is not there sheds nothing; the one that takes over finds the claim on disk, and if it has just
        looked, is told by ``renew``.

        Raises:
            StreamError: refused.
        """
        with self._claiming:
            self._claimed = consumer, batches
            if self._connection is not None:
                with suppress(DisconnectedError):
                    return self._connection.client.claim(consumer, batches)
            write_claims(self._socket.parent, consumer, batches)
            return {}

    def renew(self) -> None:
        """Claim again what was claimed last: a daemon has begun to listen, maybe in the middle of a step.

        From another thread, since that of the inbox evaluates the step.
        """
        with self._claiming, suppress(StreamError):
            if self._claimed is not None:
                with LogClient(self._socket) as client:
                    client.claim(*self._claimed)

    def acknowledge_last(self, consumer: str, cursors: Mapping[str, int]) -> None:
        """Tell that ``consumer`` is done with everything; see ``LogClient``.

        Raises:
            StreamError: refused.
        """
        if self._connection is not None:
            self._connection.client.acknowledge_last(consumer, cursors)

    def punctuate(self, wanted: Mapping[str, Mapping[str, int]]) -> None:
        """Ask for heartbeats; see ``LogClient``. A daemon that comes later is asked the same.

        Raises:
            StreamError: refused.
        """
        self._wanted = wanted
        if self._connection is not None:
            with suppress(DisconnectedError):
                self._connection.client.punctuate(wanted)

    def close(self) -> None:
        """Give the connection up; harmless when called twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connected(self) -> _Connection:
        if self._connection is None:
            self._is_there.wait()
            self._is_there.clear()
            self._connection = _Connection(self._socket, self._cursors)
            if self._wanted:
                self.punctuate(self._wanted)
        return self._connection


class _Connection:
    """One connection; a thread follows the log."""

    def __init__(self, socket: Path, cursors: Mapping[str, int]) -> None:
        self.client = LogClient(socket)
        self._chunks: queue.Queue[tuple[list[Message], int] | GscopeError] = queue.Queue(MAX_CHUNKS)
        self._is_closed = threading.Event()
        self._failure: GscopeError | None = None
        threading.Thread(
            target=self._follow, args=(dict(cursors),), name="log-subscription", daemon=True
        ).start()

    def take(self) -> tuple[list[Message], int]:
        """Everything that has come, and when the last of it did; waits for the first.

        Raises:
            GscopeError: what ended the subscription, when all that came before was taken.
        """
        if self._failure is not None:
            raise self._failure
        messages: list[Message] = []
        received_ns = 0
        chunk = self._chunks.get()
        while not isinstance(chunk, GscopeError):
            received_ns = chunk[1]
            messages += chunk[0]
            try:
                chunk = self._chunks.get_nowait()
            except queue.Empty:
                return messages, received_ns
        self._failure = chunk
        if not messages:
            raise chunk
        return messages, received_ns

    def _follow(self, cursors: dict[str, int]) -> None:
        try:
            for messages in self.client.subscribe(cursors):
                self._put((messages, time.time_ns()))
        except GscopeError as error:
            self._put(error)
        else:
            # Asked for more than the end of all streams, nobody would answer.
            self._put(DisconnectedError("the capture daemon has closed its log"))

    def _put(self, chunk: tuple[list[Message], int] | GscopeError) -> None:
        while not self._is_closed.is_set():
            with suppress(queue.Full):
                self._chunks.put(chunk, timeout=LOOK_S)
                return

    def close(self) -> None:
        """Give the connection up, and what came and was not taken."""
        self._is_closed.set()
        self.client.close()
