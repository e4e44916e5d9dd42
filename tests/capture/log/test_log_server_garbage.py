"""Whatever comes in on the socket, the log's server lives.

Neither its memory nor its threads grow.
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.flight as flight
import pytest
from tests.support.gscope_command import PATIENCE_S, wait_for

from gscope.capture.log.server import MAX_SUBSCRIPTIONS
from gscope.engine.log_client.flight_client import LogClient
from gscope.errors import DisconnectedError, StreamError
from gscope.queries.run_folder.socket_address import SocketAddress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SERVER = """
import sys
from pathlib import Path
from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import StreamLog
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.capture.log.server import LogServer
from gscope.queries.streams.messages import Punctuation
folder = Path(sys.argv[1])
log = StreamLog(folder / "log", [StreamSpec("a", ())], consumers=[Consumer("job")])
for number in range(2000):
    log.write_heartbeat(number, 0, [StreamHeartbeat("a", (Punctuation("x" * 500, number),))])
server = LogServer(log, folder / "capture.sock")
print("listening", flush=True)
sys.stdin.read()
"""
MORE_MEMORY_KB = 40_000


class Server:
    """A log's server in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "capture.sock"
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"listening\n"

    def status(self, name: str) -> int:
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(name)).split()[1])

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self._process.pid}/fd").iterdir()))

    def connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(self.path))
        return client

    def ensure_alive(self) -> None:
        """Check that it answers, at the latest after it has closed what was opened before.

        While it closes hundreds of connections, gRPC may cut a new one; clients connect again.
        """
        wait_for(self._answers, "an answer of the server")

    def _answers(self) -> bool:
        assert self._process.poll() is None
        with suppress(DisconnectedError), LogClient(self.path) as client:
            client.ping()
            assert len(next(client.subscribe({"a": 1990}))) == 10
            return True
        return False

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    server.ensure_alive()
    yield server
    server.close()


@pytest.mark.slow
def test_random_bytes_half_requests_and_ten_thousand_connections(server: Server) -> None:
    before = server.status("VmRSS"), server.descriptors()
    numbers = random.Random(7)
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    frames: list[Callable[[], bytes]] = [
        lambda: numbers.randbytes(numbers.randrange(200)),
        lambda: preface[: numbers.randrange(len(preface))],
        lambda: preface + numbers.randbytes(numbers.randrange(100)),
        lambda: preface + b"\xff\xff\xff\x00\x00\x00\x00\x00\x00",
        lambda: b"",
    ]
    waiting: list[socket.socket] = []
    for number in range(10_000):
        client = server.connect()
        with suppress(OSError):
            client.sendall(frames[number % len(frames)]())
        waiting.append(client)
        if len(waiting) == 200:
            for each in waiting:
                each.close()
            waiting = []
    server.ensure_alive()
    until = time.monotonic() + PATIENCE_S
    while server.descriptors() > before[1] + 50 and time.monotonic() < until:
        time.sleep(0.1)
    assert server.descriptors() <= before[1] + 50
    assert server.status("VmRSS") < before[0] + MORE_MEMORY_KB


def test_wrong_cursors_and_leases_are_refused_again_and_again(server: Server) -> None:
    before = server.status("VmRSS")
    with LogClient(server.path) as client:
        for cursor in (-1, 2**70, 2001):
            with pytest.raises(StreamError, match="holds messages"):
                next(client.subscribe({"a": cursor}))
            with pytest.raises(StreamError, match="cannot acknowledge"):
                client.acknowledge("job", {"a": cursor})
        for _ in range(20):
            assert len(client.lease("job", {"a": range(20_000)}).gone["a"]) == 20_000
    address = SocketAddress(server.path)
    bodies = [b"", b"\xff", b"[" * 50_000, b'{"consumer": 1, "batches": {"a": [true]}}']
    bodies += [json.dumps({"consumer": "job", "batches": {"a": x}}).encode() for x in ("1", [0.5])]
    with flight.connect(address.location) as raw:
        for body in bodies * 20:
            with pytest.raises(flight.FlightServerError):
                list(raw.do_action(flight.Action("lease", body)))
    address.close()
    server.ensure_alive()
    assert server.status("VmRSS") < before + MORE_MEMORY_KB


def test_consumers_that_stop_reading_are_few_and_cost_nothing(server: Server) -> None:
    before = server.status("VmRSS"), server.status("Threads")
    address = SocketAddress(server.path)
    clients = [flight.connect(address.location) for _ in range(60)]
    ticket = flight.Ticket(json.dumps({"cursors": {"a": 0}}).encode())
    readers = [client.do_get(ticket) for client in clients]
    refusals: list[str] = []
    for reader in readers:
        try:
            reader.read_chunk()
        except flight.FlightServerError as error:
            refusals.append(str(error))
    # one that went away a moment ago may still have its place
    assert 60 - MAX_SUBSCRIPTIONS <= len(refusals) < 60
    assert all("too many subscriptions" in refusal for refusal in refusals)
    assert server.status("Threads") < before[1] + 60
    assert server.status("VmRSS") < before[0] + 3 * MORE_MEMORY_KB
    for reader in readers:
        reader.cancel()
    for client in clients:
        client.close()
    address.close()
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            server.ensure_alive()
        except StreamError:
            assert time.monotonic() < until
        else:
            break
