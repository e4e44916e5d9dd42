"""Messages of the log as they arrive, whichever daemon serves it.

A capture daemon may be killed and restarted; its log continues. So a broken connection is not an
error here: the inbox waits until the supervisor reports that a daemon is listening, and continues
after the last message that it handed out.
"""

from __future__ import annotations

import queue
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from gscope.engine.log_client.flight_client import LogClient
from gscope.errors import DisconnectedError, GscopeError, StreamError
from gscope.queries.run_folder.lease_file import write_leases
from gscope.queries.streams.leases import LeaseReply
from gscope.queries.streams.limits_file import read_limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gscope.queries.streams.leases import AnsweredTimes
    from gscope.queries.streams.messages import Message


MAX_CHUNKS = 16
"""Chunks of messages in memory. Others wait in the log, which is bounded: a job may stand still for
days while its answers are not consumed."""

LOOK_S = 1.0
"""How often the thread of a full inbox checks whether the inbox was closed, in seconds."""


_Lease = tuple[str, "Mapping[str, Sequence[int]]", "Mapping[str, AnsweredTimes] | None"]


class Inbox:
    """A subscription to the log that survives restarts of the daemon; a context manager.

    For one thread, except for ``renew``.

    Args:
        socket: the daemon's socket.
        cursors: the sequence number of the first message to receive, by stream.
        is_listening: set by another thread whenever a daemon starts to listen; cleared here.
        limits: the file in which the log stores its limits; None if it sets none.

    Attributes:
        received_ns: when the last message of the last ``take`` reached this process, nanoseconds
            since 1970.
    """

    def __init__(
        self,
        socket: Path,
        cursors: Mapping[str, int],
        is_listening: threading.Event,
        limits: Path | None = None,
    ) -> None:
        self._socket = socket
        self._limits = limits
        self._cursors = dict(cursors)
        self._is_listening = is_listening
        self._connection: _Connection | None = None
        self._wanted: Mapping[str, Mapping[str, int]] = {}
        self._leased: _Lease | None = None
        self._leasing = threading.Lock()
        self.received_ns = 0

    def take(self) -> list[Message]:
        """Return all messages that arrived since the last call; wait for the first.

        Raises:
            StreamError: the daemon refused the request.
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
        """Report that ``consumer`` needs no message below ``cursors``.

        An acknowledgement that is lost with its daemon is not repeated: the next one includes it.

        Raises:
            StreamError: the daemon refused the request.
        """
        if self._connection is not None:
            with suppress(DisconnectedError):
                self._connection.client.acknowledge(consumer, cursors)

    def lease(
        self,
        consumer: str,
        batches: Mapping[str, Sequence[int]],
        answered: Mapping[str, AnsweredTimes] | None = None,
    ) -> LeaseReply:
        """Keep batches from being shed; return what was shed or thinned. See ``LogClient.lease``.

        While no daemon runs, nothing is shed. The daemon that takes over reads the lease from disk;
        if it has read just before, ``renew`` sends it the lease.

        Raises:
            StreamError: the daemon refused the request, or has left limits that are unreadable.
        """
        with self._leasing:
            self._leased = consumer, batches, answered
            if self._connection is not None:
                with suppress(DisconnectedError):
                    return self._connection.client.lease(consumer, batches, answered)
            write_leases(self._socket.parent, consumer, batches)
            return LeaseReply(limits={} if self._limits is None else read_limits(self._limits))

    def renew(self) -> None:
        """Lease the same batches again, as a new daemon listens, perhaps in the middle of a step.

        Called by another thread, since the inbox's thread evaluates the step.
        """
        with self._leasing, suppress(StreamError):
            if self._leased is not None:
                with LogClient(self._socket) as client:
                    client.lease(*self._leased)

    def acknowledge_last(self, consumer: str, cursors: Mapping[str, int]) -> None:
        """Report that ``consumer`` needs nothing more; see ``LogClient.acknowledge_last``.

        Raises:
            StreamError: the daemon refused the request.
        """
        if self._connection is not None:
            self._connection.client.acknowledge_last(consumer, cursors)

    def punctuate(self, wanted: Mapping[str, Mapping[str, int]]) -> None:
        """Ask for heartbeats; see ``LogClient.punctuate``. A later daemon is asked the same.

        Raises:
            StreamError: the daemon refused the request.
        """
        self._wanted = wanted
        if self._connection is not None:
            with suppress(DisconnectedError):
                self._connection.client.punctuate(wanted)

    def close(self) -> None:
        """Close the connection; harmless when called twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connected(self) -> _Connection:
        if self._connection is None:
            self._is_listening.wait()
            self._is_listening.clear()
            self._connection = _Connection(self._socket, self._cursors)
            if self._wanted:
                self.punctuate(self._wanted)
        return self._connection


class _Connection:
    """One connection to a daemon, and a thread that follows its log."""

    def __init__(self, socket: Path, cursors: Mapping[str, int]) -> None:
        self.client = LogClient(socket)
        self._chunks: queue.Queue[tuple[list[Message], int] | GscopeError] = queue.Queue(MAX_CHUNKS)
        self._is_closed = threading.Event()
        self._failure: GscopeError | None = None
        threading.Thread(
            target=self._follow, args=(dict(cursors),), name="log-subscription", daemon=True
        ).start()

    def take(self) -> tuple[list[Message], int]:
        """Return all messages that arrived; wait for the first.

        Returns:
            The messages, and when the last of them arrived, nanoseconds since 1970.

        Raises:
            GscopeError: the subscription ended, and all messages before that were taken.
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
            # After the end of all streams, a request for more would never be answered.
            self._put(DisconnectedError("the capture daemon has closed its log"))

    def _put(self, chunk: tuple[list[Message], int] | GscopeError) -> None:
        while not self._is_closed.is_set():
            with suppress(queue.Full):
                self._chunks.put(chunk, timeout=LOOK_S)
                return

    def close(self) -> None:
        """Close the connection and drop messages that were not taken."""
        self._is_closed.set()
        self.client.close()
