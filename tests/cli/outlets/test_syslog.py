"""Rows as syslog messages: own receivers, and a real rsyslogd that is killed and back."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.cli.outlets.servers import HookServer
from tests.cli.outlets.test_outlets import Run, account, counted
from tests.support.certificates import Certificate, make_certificate
from tests.support.gscope_command import wait_for
from tests.support.requirements import needs

from gscope.cli.config.destinations import parse_destination
from gscope.cli.outlets.outlet import Batch, OutletError, RowsRefused
from gscope.cli.outlets.spool import Block
from gscope.cli.outlets.syslog import MOST_DATAGRAM, SyslogDatagrams, SyslogStream
from gscope.cli.outlets.webhook import Webhook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CLOSE_WAIT = 8

MESSAGE = re.compile(
    rb"<(\d+)>1 \d{4}-\d\d-\d\dT[\d:.]+Z \S+ gscope \d+ row "
    rb'\[gscope@32473 run="w\\"eb" token="t0" query="q" number="(\d+)"\] (\{.*\})'
)


def batch(*lines: bytes) -> Batch:
    return Batch('w"eb', "t0", Block("q", 0, 5, lines))


def rows(count: int) -> list[bytes]:
    return [b'{"n": %d}' % number for number in range(count)]


def read_frames(data: bytes) -> list[bytes]:
    """Return messages that stand behind their lengths (RFC 6587, 3.4.1)."""
    found = []
    while data:
        length, _, data = data.partition(b" ")
        found.append(data[: int(length)])
        data = data[int(length) :]
    return found


class StreamServer:
    """Reads whole connections; may reset the first ones unread."""

    def __init__(self, context: ssl.SSLContext | None = None, resets: int = 0) -> None:
        self.received: list[bytes] = []
        self._context, self._resets = context, resets
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                accepted, _ = self._socket.accept()
            except OSError:
                return
            with accepted:
                if self._resets:
                    self._resets -= 1
                    # Everything has arrived, and closing resets the connection: nothing is read.
                    wait_for(partial(_has_all, accepted), "the end of the messages")
                    continue
                self._read(accepted)

    def _read(self, accepted: socket.socket) -> None:
        try:
            if self._context is not None:
                accepted = self._context.wrap_socket(accepted, server_side=True)
            data = b""
            while more := accepted.recv(1 << 16):
                data += more
        except OSError:
            return
        self.received += read_frames(data)
        accepted.close()

    def close(self) -> None:
        self._socket.close()


def _has_all(accepted: socket.socket) -> bool:
    """Return whether the other side has closed the connection."""
    state = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
    return state[0] == _CLOSE_WAIT


def test_a_message_has_the_parts_of_rfc_5424() -> None:
    server = StreamServer()
    to = parse_destination(f"syslog+tcp://127.0.0.1:{server.port}?facility=local3&severity=notice")
    SyslogStream(to).send(batch(*rows(2)))
    found = [MESSAGE.fullmatch(message) for message in server.received]
    assert [match and match.groups() for match in found] == [
        (b"157", b"5", b'{"n": 0}'),
        (b"157", b"6", b'{"n": 1}'),
    ]
    server.close()


def test_a_connection_that_is_reset_unread_is_a_failure() -> None:
    server = StreamServer(resets=1)
    outlet = SyslogStream(parse_destination(f"syslog+tcp://127.0.0.1:{server.port}"))
    with pytest.raises(OutletError, match="reset"):
        outlet.send(batch(*rows(500)))
    outlet.send(batch(*rows(500)))
    assert len(server.received) == 500
    server.close()


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return make_certificate(tmp_path, "syslog")


def server_context(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    return context


def test_tls_verifies_the_certificate(certificate: Certificate) -> None:
    server = StreamServer(server_context(certificate))
    to = parse_destination(f"syslog+tls://127.0.0.1:{server.port}")
    with pytest.raises(OutletError, match="certificate is not valid: self-signed"):
        SyslogStream(to, ssl.create_default_context()).send(batch(*rows(3)))
    trusted = ssl.create_default_context(cafile=certificate.certificate)
    SyslogStream(to, trusted).send(batch(*rows(3)))
    wait_for(lambda: len(server.received) == 3, "the messages")
    server.close()


def test_https_verifies_the_certificate(certificate: Certificate) -> None:
    server = HookServer(server_context(certificate))
    to = parse_destination(f"https://me:p%40ss@127.0.0.1:{server.port}/in")
    with pytest.raises(OutletError, match="certificate is not valid: self-signed"):
        Webhook(to, ssl.create_default_context()).send(batch(*rows(3)))
    trusted = ssl.create_default_context(cafile=certificate.certificate)
    hook = Webhook(to, trusted)
    hook.send(batch(*rows(3)))
    hook.close()
    assert [row["n"] for _, _, row in server.rows] == [0, 1, 2]
    assert server.headers["Authorization"] == "Basic bWU6cEBzcw=="
    server.kill()


def test_datagrams_go_on_behind_those_that_were_sent() -> None:
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    port = receiver.getsockname()[1]
    outlet = SyslogDatagrams(parse_destination(f"syslog://127.0.0.1:{port}"))
    receiver.close()
    sent = batch(*rows(3))
    # The kernel takes the first row, hears that nothing listens, and says so at the second.
    with pytest.raises(OutletError, match="connection refused"):
        outlet.send(sent)
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", port))
    outlet.send(sent)
    receiver.settimeout(5)
    numbers = [json.loads(receiver.recv(2000).partition(b"] ")[2])["n"] for _ in range(2)]
    assert numbers == [1, 2]
    receiver.close()
    outlet.close()


def test_a_row_that_no_datagram_holds_is_refused() -> None:
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    port = receiver.getsockname()[1]
    outlet = SyslogDatagrams(parse_destination(f"syslog://127.0.0.1:{port}"))
    long = b'{"text": "' + b"x" * MOST_DATAGRAM + b'"}'
    with pytest.raises(RowsRefused) as refused:
        outlet.send(batch(b'{"n": 0}', long, b'{"n": 1}'))
    assert refused.value.rows == 1
    assert all(b'"n"' in receiver.recv(2000) for _ in range(2))
    receiver.close()
    outlet.close()


class Rsyslog:
    """A real rsyslogd that writes messages to a file, one a line."""

    def __init__(self, folder: Path, certificate: Certificate | None = None) -> None:
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        driver = ""
        secured = ""
        if certificate is not None:
            driver = (
                f'global(DefaultNetstreamDriverCAFile="{certificate.certificate}"'
                f' DefaultNetstreamDriverCertFile="{certificate.certificate}"'
                f' DefaultNetstreamDriverKeyFile="{certificate.key}")\n'
            )
            secured = ' StreamDriver.Name="ossl" StreamDriver.Mode="1" StreamDriver.AuthMode="anon"'
        (folder / "rsyslog.conf").write_text(
            f'{driver}module(load="imtcp"{secured}) module(load="imudp")\n'
            'template(name="all" type="string" string="%structured-data% %msg%\\n")\n'
            f'ruleset(name="in") {{ action(type="omfile" file="{folder}/messages" template="all"'
            ' flushInterval="1") }\n'
            f'input(type="imtcp" address="127.0.0.1" port="{self.port}" ruleset="in")\n'
            f'input(type="imudp" address="127.0.0.1" port="{self.port}" ruleset="in")\n'
        )
        self.start()

    def start(self) -> None:
        program = shutil.which("rsyslogd")
        assert program is not None
        self._process = subprocess.Popen(
            [
                *(program, "-n", "-f", str(self._folder / "rsyslog.conf")),
                *("-i", str(self._folder / "pid")),
            ],
            stderr=subprocess.DEVNULL,
        )
        wait_for(self._listens, "the server")

    def _listens(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self, number: int = signal.SIGKILL) -> None:
        self._process.send_signal(number)
        self._process.wait()

    @property
    def numbers(self) -> list[int]:
        """The numbers of rows that were written, in order."""
        path = self._folder / "messages"
        text = path.read_text() if path.exists() else ""
        return [int(found) for found in re.findall(r'number="(\d+)"', text)]


@pytest.fixture(params=["tcp", "udp"])
def rsyslog(tmp_path: Path) -> Iterator[Rsyslog]:
    made = Rsyslog(tmp_path)
    yield made
    made.kill()


def has(server: Rsyslog, last: int) -> bool:
    return last in server.numbers


@pytest.mark.live
@needs("rsyslogd")
@pytest.mark.parametrize("rsyslog", ["tcp"], indirect=True)
def test_rsyslogd_that_is_killed_and_back_has_every_row(tmp_path: Path, rsyslog: Rsyslog) -> None:
    run = Run(tmp_path / "run", f"syslog+tcp://127.0.0.1:{rsyslog.port}")
    run.write(400)
    run.await_record(400)
    wait_for(partial(has, rsyslog, 400), "the first rows")
    rsyslog.kill()
    for _ in range(4):
        run.write(150)
    wait_for(lambda: run.sink.accounts()[0]["failure"], "the failure")
    rsyslog.start()
    assert counted(run.close()) == account(1000, outages=1)
    wait_for(partial(has, rsyslog, 1000), "the last row")
    assert rsyslog.numbers == list(range(1, 1001))


@pytest.mark.live
@needs("rsyslogd")
@pytest.mark.parametrize("rsyslog", ["udp"], indirect=True)
def test_datagrams_to_a_dead_rsyslogd_are_lost_in_part(tmp_path: Path, rsyslog: Rsyslog) -> None:
    """The rows whose loss the host reports afterwards are not sent again; all others are."""
    run = Run(tmp_path / "run", f"syslog://127.0.0.1:{rsyslog.port}")
    run.write(100)
    wait_for(partial(has, rsyslog, 100), "the first rows")
    rsyslog.kill()
    run.write(100)
    wait_for(lambda: run.sink.accounts()[0]["failure"], "the failure")
    rsyslog.start()
    found = run.close()
    assert found["sent_rows_total"] == 200
    wait_for(partial(has, rsyslog, 200), "the last row")
    lost = set(range(1, 201)) - set(rsyslog.numbers)
    assert lost
    assert min(lost) > 100
    assert len(rsyslog.numbers) == len(set(rsyslog.numbers))
