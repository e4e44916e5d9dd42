"""``kill -9`` of a sensor's daemon and supervisor: a reader gets every logged row, once."""

from __future__ import annotations

import itertools
import signal
import socket
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.af_packet.network import DEVICE
from tests.faults.faulty_run import Sender, number_of
from tests.faults.role import Role
from tests.support.certificates import TOKEN, make_certificate, token_file
from tests.support.gscope_command import PATIENCE_S, wait_for
from tests.support.requirements import needs

from gscope.capture.log.index import read_index
from gscope.capture.log.remote.address import LogAddress, TcpAddress
from gscope.capture.log.remote.client import RemoteLog
from gscope.errors import DisconnectedError
from gscope.queries.catalog.scalar.addresses import format_ip
from gscope.queries.streams.messages import Batch, EndOfStream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.live, pytest.mark.slow, needs("openssl")]

PACKETS = "DEFINE { query_name packets; } SELECT time, srcIP FROM UDP"
ROWS_BETWEEN_KILLS = 300


class Sensor(Role):
    """``gscope run --no-job`` over TLS on a port of its own."""

    def __init__(self, folder: Path) -> None:
        certificate = make_certificate(folder, "sensor1")
        token_file(folder)
        with socket.create_server(("127.0.0.1", 0)) as free:
            place = TcpAddress("127.0.0.1", free.getsockname()[1])
        self.address = LogAddress(place, TOKEN, certificate.certificate.read_bytes())
        super().__init__(
            folder,
            "sensor",
            [
                *("run", "-i", f"main={DEVICE}", "-e", PACKETS, "--no-job"),
                *("--listen", str(place), "--tls-certificate", certificate.certificate),
                *("--tls-key", certificate.key),
            ],
        )

    def has_ended_input(self) -> bool:
        """Whether every stream has ended, in the log's index."""
        messages = read_index(self.run_dir / "log").messages
        return any(isinstance(message, EndOfStream) for message in messages)


@pytest.fixture
def sensor(network: None, tmp_path: Path) -> Iterator[Sensor]:
    # The path of the socket to which connections are forwarded is too long for the kernel.
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    made = Sensor(folder)
    yield made
    made.close()


class Reader:
    """A reader that keeps its cursors and rows together, as a relay does on disk."""

    def __init__(self, sensor: Sensor) -> None:
        self._sensor = sensor
        self._identity: str | None = None
        self._cursors: dict[str, int] = {}
        self.packets: Counter[int] = Counter()
        self.has_ended = False
        self.connections = 0

    def read(self, rows: int | None) -> None:
        """Read that many further rows, or to the end."""
        wanted = None if rows is None else self.packets.total() + rows
        until = time.monotonic() + PATIENCE_S
        refusal = ""
        while not self.has_ended and (wanted is None or self.packets.total() < wanted):
            self._sensor.ensure_alive()
            assert time.monotonic() < until, (refusal, self._sensor.reported)
            try:
                self._follow(wanted)
            except DisconnectedError as error:
                refusal = str(error)

    def _follow(self, wanted: int | None) -> None:
        with RemoteLog(self._sensor.address, "relay") as log:
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


def test_a_sensor_that_is_killed_serves_every_row_once(sensor: Sensor, sender: Sender) -> None:
    reader = Reader(sensor)
    sender.start()
    reader.read(ROWS_BETWEEN_KILLS)
    sensor.kill_daemon()
    reader.read(ROWS_BETWEEN_KILLS)
    sensor.kill_supervisor()
    reader.read(ROWS_BETWEEN_KILLS)
    sensor.stop()
    wait_for(sensor.has_ended_input, "the end of the input")
    sensor.kill_daemon()  # the daemon now only serves
    reader.read(None)
    assert sensor.end() == 128 + signal.SIGTERM, sensor.reported
    assert reader.connections >= 3
    assert set(reader.packets.values()) == {1}, "a packet was served twice"
    # What is missing was sent while no daemon captured: two gaps, and the begin.
    sender.stop()
    numbers = sorted(reader.packets)
    gaps = [b for a, b in itertools.pairwise(numbers) if b != a + 1]
    assert len(gaps) <= 2, gaps
    assert "rows served" in sensor.reported
