"""``kill -9`` of a sensor's daemon and supervisor: a reader gets every logged row, once."""

from __future__ import annotations

import itertools
import signal
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.af_packet.network import DEVICE
from tests.faults.role import Role
from tests.faults.sensor_reader import SensorReader
from tests.support.certificates import TOKEN, make_certificate, token_file
from tests.support.gscope_command import PATIENCE_S, wait_for
from tests.support.ports import lasting_port
from tests.support.requirements import needs

from gscope.capture.log.index import read_index
from gscope.capture.log.remote.address import LogAddress, TcpAddress
from gscope.queries.streams.messages import EndOfStream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.faulty_run import Sender

pytestmark = [pytest.mark.live, pytest.mark.slow, needs("openssl")]

PACKETS = "DEFINE { query_name packets; } SELECT time, srcIP FROM UDP"
ROWS_BETWEEN_KILLS = 300


class Sensor(Role):
    """``gscope run --no-job`` over TLS on a port of its own."""

    def __init__(self, folder: Path) -> None:
        certificate = make_certificate(folder, "sensor1")
        token_file(folder)
        place = TcpAddress("127.0.0.1", lasting_port())
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


def test_a_sensor_that_is_killed_serves_every_row_once(sensor: Sensor, sender: Sender) -> None:
    with SensorReader(sensor.address, sensor.ensure_alive, PATIENCE_S) as reader:
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
