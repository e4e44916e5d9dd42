"""``kill -9`` of a sensor's daemon and supervisor: a reader gets every logged row, once."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.af_packet.network import DEVICE, own_network, run_ip
from tests.faults.faulty_run import Sender, number_of
from tests.support.certificates import TOKEN, make_certificate, token_file
from tests.support.gscope_command import command, descendants, is_alive, wait_for
from tests.support.requirements import needs

from gscope.capture.log.index import read_index
from gscope.capture.remote.address import LogAddress, TcpAddress
from gscope.capture.remote.client import RemoteLog
from gscope.errors import DisconnectedError
from gscope.queries.catalog.scalar.addresses import format_ip
from gscope.queries.streams.messages import Batch, EndOfStream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.live, pytest.mark.slow, needs("openssl")]

PACKETS = "DEFINE { query_name packets; } SELECT time, srcIP FROM UDP"
ROWS_BETWEEN_KILLS = 300


@pytest.fixture(autouse=True)
def network() -> Iterator[None]:
    with own_network():
        run_ip("link", "set", "lo", "up")
        yield


@pytest.fixture
def sender() -> Iterator[Sender]:
    made = Sender()
    yield made
    made.stop()


class Sensor:
    """``gscope run --no-job`` over TLS on a port of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        certificate = make_certificate(folder, "sensor1")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.place = TcpAddress("127.0.0.1", free.getsockname()[1])
        self.address = LogAddress(self.place, TOKEN, certificate.certificate.read_bytes())
        self._words = command(
            *("run", "--run", "sensor", "-i", f"main={DEVICE}", "-e", PACKETS, "--no-job"),
            *("--listen", str(self.place), "--token-file", token_file(folder)),
            *("--tls-certificate", certificate.certificate, "--tls-key", certificate.key),
            *("--work-dir", folder / "work", "--failure-timeout", "60s"),
        )
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._words, stderr=subprocess.PIPE)

    def has_ended_input(self) -> bool:
        """Whether every stream has ended, in the log's index."""
        messages = read_index(self._folder / "work" / "run-sensor" / "log").messages
        return any(isinstance(message, EndOfStream) for message in messages)

    def kill_daemon(self) -> None:
        found = [
            pid
            for pid, line in descendants(self.process.pid).items()
            if "gscope.capture.daemon" in line
        ]
        os.kill(found[0], signal.SIGKILL)

    def kill_supervisor(self) -> None:
        children = descendants(self.process.pid)
        self.process.kill()
        self.process.communicate()
        wait_for(lambda: not any(map(is_alive, children)), "the end of the daemon")
        self.process = self._started()


class Reader:
    """A reader that keeps its cursors and rows together, as a relay does on disk."""

    def __init__(self, address: LogAddress) -> None:
        self._address = address
        self._identity: str | None = None
        self._cursors: dict[str, int] = {}
        self.packets: Counter[int] = Counter()
        self.has_ended = False
        self.connections = 0

    def read(self, rows: int | None) -> None:
        """Read that many further rows, or to the end."""
        wanted = None if rows is None else self.packets.total() + rows
        until = time.monotonic() + 120
        while not self.has_ended and (wanted is None or self.packets.total() < wanted):
            assert time.monotonic() < until, "the sensor serves nothing"
            with suppress(DisconnectedError):
                self._follow(wanted)

    def _follow(self, wanted: int | None) -> None:
        with RemoteLog(self._address, "relay") as log:
            try:
                description = log.describe()
            except DisconnectedError:
                time.sleep(0.1)
                raise
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
                        addresses = table["srcIP"].to_pylist()
                        self.packets.update(number_of(format_ip(_int(a))) for a in addresses)
                    self.has_ended = isinstance(message, EndOfStream)
                    self._cursors[message.stream] = message.sequence + 1
                log.acknowledge(self._cursors)
                if wanted is not None and self.packets.total() >= wanted:
                    return


def _int(address: bytes) -> int:
    return int.from_bytes(address, "big")


def test_a_sensor_that_is_killed_serves_every_row_once(tmp_path: Path, sender: Sender) -> None:
    sensor = Sensor(tmp_path)
    reader = Reader(sensor.address)
    sender.start()
    reader.read(ROWS_BETWEEN_KILLS)
    sensor.kill_daemon()
    reader.read(ROWS_BETWEEN_KILLS)
    sensor.kill_supervisor()
    reader.read(ROWS_BETWEEN_KILLS)
    sensor.process.send_signal(signal.SIGTERM)
    wait_for(sensor.has_ended_input, "the end of the input")
    sensor.kill_daemon()  # the daemon now only serves
    reader.read(None)
    _, error = sensor.process.communicate(timeout=60)
    assert sensor.process.returncode == 128 + signal.SIGTERM, error.decode()
    assert reader.connections >= 3
    assert set(reader.packets.values()) == {1}, "a packet was served twice"
    # What is missing was sent while no daemon captured: two gaps, and the begin.
    sender.stop()
    numbers = sorted(reader.packets)
    gaps = [b for a, b in itertools.pairwise(numbers) if b != a + 1]
    assert len(gaps) <= 2, gaps
    assert b"rows served" in error
