"""Who reads a log from other hosts: connections, consumers, and what was sent to each."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Any

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(slots=True)
class _Reader:
    """A consumer since this process was started."""

    last_contact_ns: int = 0
    subscription: int = 0
    connections: set[str] = field(default_factory=set)
    peer: str = ""
    bytes_out: int = 0
    rows_out: int = 0


class Readers:
    """The readers of one log; for use by all threads.

    Args:
        address: the address at which they connect.
        wall_ns: returns nanoseconds since 1970.
    """

    def __init__(self, address: str, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self._address = address
        self._wall_ns = wall_ns
        self._lock = threading.Lock()
        self._peers: dict[str, str] = {}
        self._authenticated: set[str] = set()
        self._consumers: dict[str, str] = {}
        self._readers: dict[str, _Reader] = {}
        self._refused: Counter[str] = Counter()

    def on_connected(self, connection: str, peer: str) -> None:
        """Note a new connection, and the address of its peer."""
        with self._lock:
            self._peers[connection] = peer

    def on_disconnected(self, connection: str) -> None:
        """Note the end of a connection."""
        with self._lock:
            self._peers.pop(connection, None)
            self._authenticated.discard(connection)
            consumer = self._consumers.pop(connection, None)
            if consumer is not None:
                self._readers[consumer].connections.discard(connection)

    def on_refused(self, reason: str) -> None:
        """Count a connection or request that was refused."""
        with self._lock:
            self._refused[reason] += 1

    def on_request(self, connection: str) -> str | None:
        """Note a request with a valid token; return the consumer of the connection, if known."""
        with self._lock:
            if connection in self._peers:
                self._authenticated.add(connection)
            consumer = self._consumers.get(connection)
            if consumer is not None:
                self._readers[consumer].last_contact_ns = self._wall_ns()
            return consumer

    def has_presented_token(self, connection: str) -> bool:
        """Return whether a request of the connection had a valid token."""
        with self._lock:
            return connection in self._authenticated

    def on_described(self, connection: str, consumer: str) -> None:
        """Note who the consumer of a connection is."""
        with self._lock:
            before = self._consumers.get(connection)
            if before is not None and before in self._readers:
                self._readers[before].connections.discard(connection)
            reader = self._readers.setdefault(consumer, _Reader())
            if connection in self._peers:
                self._consumers[connection] = consumer
                reader.connections.add(connection)
                reader.peer = self._peers[connection]
            reader.last_contact_ns = self._wall_ns()

    def begin_subscription(self, consumer: str) -> int:
        """Return the number of a new subscription, which replaces earlier ones."""
        with self._lock:
            reader = self._readers.setdefault(consumer, _Reader())
            reader.subscription += 1
            return reader.subscription

    def is_current(self, consumer: str, subscription: int) -> bool:
        """Return whether the consumer has begun no later subscription."""
        with self._lock:
            return self._readers[consumer].subscription == subscription

    def on_sent(self, consumer: str, size_bytes: int, rows: int = 0) -> None:
        """Count what is sent to a consumer."""
        with self._lock:
            reader = self._readers.setdefault(consumer, _Reader())
            reader.bytes_out += size_bytes
            reader.rows_out += rows

    def status(self, waiting: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
        """Return the state of all for other processes; see ``docs/status.schema.json``.

        Args:
            waiting: what each registered consumer has not acknowledged.
        """
        with self._lock:
            return {
                "address": self._address,
                "connections": len(self._peers),
                "refused_total": dict(self._refused),
                "consumers": [
                    {"name": name, **self._consumer(name), **counts}
                    for name, counts in waiting.items()
                ],
            }

    def _consumer(self, name: str) -> dict[str, Any]:
        reader = self._readers.get(name, _Reader())
        return {
            "state": "connected" if reader.connections else "absent",
            "peer": reader.peer or None,
            "last_contact_ns": reader.last_contact_ns or None,
            "bytes_out_total": reader.bytes_out,
            "rows_out_total": reader.rows_out,
        }
