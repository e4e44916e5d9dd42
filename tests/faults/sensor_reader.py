"""A reader of a sensor's rows in a process of its own, which is in the network of its parent.

Flight's threads stay in the network namespace where the first of them was started, so a client in
the test's process would connect where an earlier test was.
"""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from typing import TYPE_CHECKING, Self

from tests.faults.faulty_run import number_of

from gscope.capture.log.remote.client import RemoteLog
from gscope.errors import DisconnectedError
from gscope.queries.catalog.scalar.addresses import format_ip
from gscope.queries.streams.messages import Batch, EndOfStream

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from gscope.capture.log.remote.address import LogAddress

RETRY_S = 0.1
POLL_S = 0.2


class SensorReader:
    """Reads rows from its construction on; a context manager that ends the process.

    Args:
        address: of the sensor, which may be absent.
        ensure_alive: raises if the sensor has ended; called while its rows are awaited.
        patience_s: how long to wait for rows.

    Attributes:
        packets: how often each packet was served, by its number.
        connections: how often the sensor was connected to.
        has_ended: whether the end of the stream was read.
    """

    def __init__(
        self, address: LogAddress, ensure_alive: Callable[[], None], patience_s: float
    ) -> None:
        self._ensure_alive = ensure_alive
        self._patience_s = patience_s
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, address), daemon=True)
        self._process.start()
        other.close()
        self.packets: Counter[int] = Counter()
        self.connections = 0
        self.has_ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def read(self, rows: int | None) -> None:
        """Read that many further rows, or to the end."""
        wanted = None if rows is None else self.packets.total() + rows
        self._pipe.send(wanted)
        until = time.monotonic() + self._patience_s
        refusal = ""
        while True:
            self._ensure_alive()
            assert time.monotonic() < until, f"rows are missing; last refusal: {refusal}"
            if not self._pipe.poll(POLL_S):
                continue
            found = self._pipe.recv()
            if isinstance(found, str):
                refusal = found
                continue
            self.packets, self.connections, self.has_ended = found
            return


class _Cursors:
    """Where a reader is; it keeps cursors and rows together, as a relay does on disk."""

    def __init__(self, address: LogAddress) -> None:
        self._address = address
        self._identity: str | None = None
        self._cursors: dict[str, int] = {}
        self.packets: Counter[int] = Counter()
        self.connections = 0
        self.has_ended = False

    def follow(self, wanted: int | None) -> None:
        """Read until there are ``wanted`` rows in all, the end, or the end of the connection."""
        with RemoteLog(self._address, "relay") as log:
            description = log.describe()
            self.connections += 1
            assert self._identity in (None, description.log), "the log was replaced"
            self._identity = description.log
            for stream in description.streams:
                assert stream.base <= self._cursors.setdefault(stream.name, stream.base)
            for messages in log.subscribe(self._cursors):
                for message in messages:
                    if isinstance(message, Batch):
                        table = log.pull(message.stream, message.sequence)
                        assert table is not None
                        addresses = (int.from_bytes(a, "big") for a in table["srcIP"].to_pylist())
                        self.packets.update(number_of(format_ip(a)) for a in addresses)
                    self.has_ended = isinstance(message, EndOfStream)
                    self._cursors[message.stream] = message.sequence + 1
                log.acknowledge(self._cursors)
                if self.has_read(wanted):
                    return

    def has_read(self, wanted: int | None) -> bool:
        return self.has_ended or (wanted is not None and self.packets.total() >= wanted)


def _serve(pipe: Connection, address: LogAddress) -> None:
    """Read as far as each request says; send what was read, and before it each refusal."""
    reader = _Cursors(address)
    while True:
        wanted = pipe.recv()
        while not reader.has_read(wanted):
            try:
                reader.follow(wanted)
            except DisconnectedError as error:
                pipe.send(str(error))
                time.sleep(RETRY_S)
        pipe.send((reader.packets, reader.connections, reader.has_ended))
