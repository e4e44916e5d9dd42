"""Sensors: what is refused, and the documented commands over a capture, read by a plain client."""

from __future__ import annotations

import re
import shlex
import socket
import struct
import subprocess
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.certificates import token_file
from tests.support.gscope_command import command, status, wait_for
from tests.support.requirements import needs

from gscope.capture.log.description import ensure_same_lftas
from gscope.capture.log.remote.address import LogAddress, TcpAddress
from gscope.capture.log.remote.client import RemoteLog
from gscope.cli.commands.option_groups import OutputRequest
from gscope.cli.commands.sensor import requested_sensor
from gscope.cli.config.effective import Config, GivenSetting, load_config
from gscope.cli.config.listening import listening
from gscope.errors import DisconnectedError, StreamError, UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    from gscope.queries.plan.program import Program

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"
QUERY = (
    "SELECT tb, srcPort, count(*) AS packets, sum(len) AS bytes FROM UDP"
    " GROUP BY time/60 AS tb, srcPort"
)


def config(**given: str) -> Config:
    settings = {
        key.replace("tls_", "tls."): GivenSetting(text, f"--{key}") for key, text in given.items()
    }
    return load_config(settings, None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no address to listen on; name one with --listen HOST:PORT"),
        ({"listen": "127.0.0.1:0"}, "without a token.*--token-file"),
        ({"listen": "127.0.0.1:0", "token_file": "t", "tls_key": "k"}, "--tls-certificate is mis"),
        ({"listen": "127.0.0.1:0", "token_file": "t", "tls_certificate": "c"}, "--tls-key is mis"),
    ],
)
def test_a_sensor_needs_an_address_a_token_and_both_or_none_of_certificate_and_key(
    given: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        requested_sensor(config(**given), OutputRequest(), None, has_no_job=True)


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    given = config(listen="127.0.0.1:0", token_file="token")
    with pytest.raises(UsageError, match="add --no-job, or leave --listen out"):
        requested_sensor(given, OutputRequest(), None, has_no_job=False)
    with pytest.raises(UsageError, match="-w has no meaning with --no-job"):
        requested_sensor(given, OutputRequest(tmp_path), None, has_no_job=True)
    with pytest.raises(UsageError, match=r"--listen: invalid address '9470'.*HOST:PORT"):
        config(listen="9470")


def test_a_sensor_does_not_sample(tmp_path: Path) -> None:
    place = {"listen": "127.0.0.1:0", "token_file": "token"}
    rate = {"shedding.rate": GivenSetting("0.1", "--sample-rate")}
    given = {name: GivenSetting(text, f"--{name}") for name, text in place.items()}
    sampling = load_config(given | rate, None)
    with pytest.raises(UsageError, match=r"^--sample-rate: a sensor does not sample"):
        requested_sensor(sampling, OutputRequest(), None, has_no_job=True)
    (tmp_path / "gscope.yaml").write_text("shedding: {mode: auto}")
    with pytest.raises(UsageError, match=r"gscope.yaml:1: a sensor does not sample.*off"):
        requested_sensor(config(**place), OutputRequest(), None, has_no_job=True)


def test_an_address_in_the_configuration_file_does_not_make_every_run_a_sensor(
    tmp_path: Path,
) -> None:
    text = "listen: 192.0.2.1:9470\ntoken_file: token\ntls:\n  certificate: c\n  key: k\n"
    (tmp_path / "gscope.yaml").write_text(text)
    assert requested_sensor(config(), OutputRequest(), None, has_no_job=False) is None
    found = requested_sensor(config(), OutputRequest(), None, has_no_job=True)
    assert found is not None
    assert str(found.address) == "192.0.2.1:9470"
    assert (found.token, found.certificate, found.key) == (Path("token"), Path("c"), Path("k"))


def test_files_and_address_are_checked_before_anything_starts(tmp_path: Path) -> None:
    def listen(**given: str) -> None:
        request = requested_sensor(config(**given), OutputRequest(), None, has_no_job=True)
        assert request is not None
        with listening(request):
            pass

    token = str(token_file(tmp_path))
    with pytest.raises(UsageError, match="without TLS"):
        listen(listen="0.0.0.0:0", token_file=token)
    with pytest.raises(UsageError, match="cannot read the token none"):
        listen(listen="127.0.0.1:0", token_file="none")
    with pytest.raises(UsageError, match="cannot read the certificate none"):
        listen(listen="127.0.0.1:0", token_file=token, tls_certificate="none", tls_key="none")
    listen(listen="127.0.0.1:0", token_file=token)


def datagram(number: int) -> bytes:
    """An Ethernet frame with a UDP datagram whose source port and length are of the number."""
    payload = bytes(number % 7)
    udp = struct.pack(">HHHH", 1000 + number % 5, 53, 8 + len(payload), 0) + payload
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0)
    return b"\2" * 6 + b"\4" * 6 + b"\x08\0" + head + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + udp


def write_capture(path: Path, packets: int) -> dict[tuple[int, int], tuple[int, int]]:
    """Write a pcap with a packet a second; return packets and bytes by minute and port."""
    counted: Counter[tuple[int, int]] = Counter()
    sizes: Counter[tuple[int, int]] = Counter()
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number in range(packets):
            data, second = datagram(number), 1_700_000_000 + number
            file.write(struct.pack("<IIII", second, 0, len(data), len(data)) + data)
            group = second // 60, 1000 + number % 5
            counted[group] += 1
            sizes[group] += len(data)
    return {group: (count, sizes[group]) for group, count in counted.items()}


def compiled(text: str) -> Program:
    return compile_queries([QueryText(text, "query")], CompileContext(interfaces=("x",))).program


@needs("openssl")
def test_the_documented_sensor_serves_what_a_plain_loop_counts(tmp_path: Path) -> None:
    """The commands of the page, with loopback in the place of its address and a capture."""
    (shell,) = re.findall(r"^```sh\n(openssl req.*?)^```$", PAGE.read_text(), re.M | re.S)
    subprocess.run(
        ["sh", "-e", "-c", shell.replace("192.0.2.1", "127.0.0.1")],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    (shown,) = re.findall(
        r"^gscope run flows\.gsql (-i eth0 [^\n]*--no-job .*?)^```$", PAGE.read_text(), re.M | re.S
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = TcpAddress("127.0.0.1", free.getsockname()[1])
    options = shlex.split(
        shown.replace("\\\n", " ").replace("192.0.2.1:9470", str(place)).replace("-i eth0 ", "")
    )
    expected = write_capture(tmp_path / "a.pcap", 300)
    (tmp_path / "flows.gsql").write_text("DEFINE { query_name query; } " + QUERY)
    sensor = subprocess.Popen(
        command("replay", "a.pcap", "-q", "flows.gsql", *options, "--work-dir", "work"),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(lambda: _remote(tmp_path) or sensor.poll() is not None, "a sensor that listens")
        assert sensor.poll() is None, sensor.communicate()
        token = (tmp_path / "token").read_text().strip()
        address = LogAddress(place, token, (tmp_path / "sensor.crt").read_bytes())
        with RemoteLog(address, "relay") as log:
            description = log.describe()
            ensure_same_lftas(compiled(QUERY), description, str(place))
            with pytest.raises(
                StreamError, match="runs another query: there 'key tb := time DIV 60'"
            ):
                ensure_same_lftas(compiled(QUERY.replace("/60", "/61")), description, str(place))
            cursors = {stream.name: 0 for stream in description.streams}
            found: Counter[tuple[int, int]] = Counter()
            sizes: Counter[tuple[int, int]] = Counter()
            for messages in log.subscribe(dict(cursors)):
                for message in messages:
                    cursors[message.stream] = message.sequence + 1
                    if isinstance(message, Batch):
                        table = log.pull(message.stream, message.sequence)
                        assert table is not None
                        for row in table.to_pylist():
                            found[row["tb"], row["srcPort"]] += row["count0"]
                            sizes[row["tb"], row["srcPort"]] += row["sum1"]
            assert {group: (count, sizes[group]) for group, count in found.items()} == expected
            assert sensor.poll() is None, "it must wait for the acknowledgement"
            wait_for(lambda: _remote(tmp_path).get("consumers"), "the reader in the status")
            (reader,) = _remote(tmp_path)["consumers"]
            assert (reader["name"], reader["state"]) == ("relay", "connected")
            with suppress(DisconnectedError):  # it may end before its reply arrives
                log.acknowledge(cursors)
        _, error = sensor.communicate(timeout=60)
    finally:
        sensor.kill()
        sensor.communicate()
    assert sensor.returncode == 0, error
    assert f"serving rows at {place}" in error
    assert f"300 packets received = 300 accepted; {len(expected)} rows served" in error


def _remote(folder: Path) -> dict[str, Any]:
    document = status(folder / "work")
    capture = document.get("capture") or {}
    return capture.get("remote") or {}
