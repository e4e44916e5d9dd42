"""``gscope run`` on virtual Ethernet devices in a network of the test's own, end to end."""

from __future__ import annotations

import json
import signal
import struct
import subprocess
import threading
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.replay.test_replay_capture import write_pcap
from tests.capture.sources.af_packet.network import DEVICE, SENDER, own_network, run_ip, send
from tests.support.gscope_command import command, descendants, run

from gscope.capture.process.confinement.privileges import capabilities
from gscope.capture.sources.af_packet.source import AfPacketSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FLOWS = """SELECT tb, srcIP, destIP, srcPort, count(*) AS packets, sum(len) AS bytes
FROM UDP GROUP BY time/2 AS tb, srcIP, destIP, srcPort"""
PACKETS = "SELECT time, srcIP, srcPort FROM UDP"
BOTH = f"""DEFINE {{ query_name one; }} {FLOWS.replace("UDP", "one.UDP")};
DEFINE {{ query_name other; }} {FLOWS.replace("UDP", "other.UDP")};
DEFINE {{ query_name all; }} MERGE one.tb : other.tb FROM one, other"""

PATIENCE_S = 300.0
"""After this a test that waits has failed."""

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.fixture(autouse=True)
def network() -> Iterator[None]:
    """Devices of our own; without the right to make them the test is skipped."""
    with own_network():
        run_ip("link", "set", "lo", "up")  # Spark talks to its Java on it
        yield


class Live:
    """A ``gscope run`` that is under way."""

    def __init__(self, *arguments: str | Path) -> None:
        self.lines: list[bytes] = []
        self.errors: list[bytes] = []
        self._process = subprocess.Popen(
            command("run", *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._came = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read, args=(pipe, lines))
            for pipe, lines in (
                (self._process.stdout, self.lines),
                (self._process.stderr, self.errors),
            )
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, pipe: Any, lines: list[bytes]) -> None:
        for line in pipe:
            with self._came:
                lines.append(line)
                self._came.notify_all()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_for_lines(self, count: int, provoke: Callable[[], object] = lambda: None) -> None:
        """Until ``count`` lines are on standard output; ``provoke`` is called again and again."""
        self.wait_for(lambda: len(self.lines) >= count, provoke)

    def wait_for(
        self, condition: Callable[[], bool], provoke: Callable[[], object] = lambda: None
    ) -> None:
        """Wait until lines fulfil ``condition``, and call ``provoke`` again and again meanwhile."""
        until = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < until, self.errors
            provoke()
            with self._came:
                self._came.wait_for(condition, 0.2)

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Ask it to end; the exit code."""
        self._process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        code = self._process.wait(PATIENCE_S)
        for reader in self._readers:
            reader.join()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._process.stdout.close()
        self._process.stderr.close()
        return code

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self.wait()

    @property
    def daemon(self) -> int:
        """The process id of its capture daemon."""
        found = [p for p, line in descendants(self.pid).items() if "capture.daemon" in line]
        return found[0]

    @property
    def summary(self) -> str:
        return b"".join(self.errors).decode()


@pytest.fixture
def live() -> Iterator[Any]:
    """Starts ``gscope run``, and waits until the heading is there: then it is listening."""
    started: list[Live] = []

    def start(*arguments: str | Path) -> Live:
        started.append(Live(*arguments, "-o", "csv"))
        started[-1].wait_for_lines(1)
        return started[-1]

    yield start
    for each in started:
        each.kill()


def udp(number: int) -> bytes:
    """An Ethernet frame with an IPv4 UDP datagram; flow and length depend on ``number``."""
    payload = bytes(number % 50)
    port = 1000 + number % 7
    datagram = struct.pack(">HHHH", port, 53, 8 + len(payload), 0) + payload
    addresses = bytes([10, 0, 0, number % 5, 10, 0, 0, 9])
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(datagram), number, 0, 64, 17, 0)
    return b"\x02" * 6 + b"\x04" * 6 + b"\x08\x00" + head + addresses + datagram


def packets_in(seconds: float) -> list[int]:
    """How many packets ``send_for`` sends in each tenth of ``seconds``."""
    return [20 + tenth % 3 for tenth in range(int(seconds * 10))]


def send_for(seconds: float, device: str = SENDER) -> int:
    """Send packets in every tenth of ``seconds``, or later on a busy machine; how many."""
    sent = 0
    pace = threading.Event()
    for count in packets_in(seconds):
        sent += send((udp(sent + n) for n in range(count)), device)
        pace.wait(0.1)
    return sent


@contextmanager
def captured(device: str, path: Path) -> Iterator[None]:
    """Write everything that arrives at a device meanwhile to a file, with the times it has."""
    source = AfPacketSource(device, device, ring_bytes=16 << 20)
    source.open()
    source.start()
    packets: list[tuple[int, bytes]] = []
    is_over = threading.Event()

    def follow() -> None:
        while True:
            was_over = is_over.is_set()
            block = source.next_block(0.1)
            if block is None and was_over:
                return
            for n in range(block.count if block is not None else 0):
                assert block is not None
                begin = int(block.offset[n])
                data = block.data[begin : begin + int(block.caplen[n])].tobytes()
                packets.append((int(block.time_ns[n]), data))

    reader = threading.Thread(target=follow)
    reader.start()
    try:
        yield
    finally:
        is_over.set()
        reader.join()
        source.close()
    assert source.stats.dropped_packets == 0
    write_pcap(path, packets)


def csv_rows(lines: list[bytes]) -> Counter[bytes]:
    return Counter(line.rstrip() for line in lines)


def test_one_thread_two_threads_and_a_file_give_the_same_rows(live: Any, tmp_path: Path) -> None:
    file = tmp_path / "main.pcap"
    settings = ("-e", FLOWS, "-i", f"main={DEVICE}")
    runs = [live(*settings), live(*settings, "--fanout", "2")]
    with captured(DEVICE, file):
        sent = send_for(3)
    for running in runs:
        assert running.end() == 128 + signal.SIGINT
        assert f"{sent:,} packets received = {sent:,} accepted;" in running.summary
    replayed = run("replay", file, "-e", FLOWS, "-o", "csv", "--quiet")
    rows = csv_rows(replayed.stdout.encode().splitlines())
    assert rows.total() > 20
    assert [csv_rows(running.lines) for running in runs] == [rows, rows]


def test_epochs_of_silent_links_close_and_a_merge_waits_for_none(live: Any) -> None:
    run_ip("link", "add", "quiet_out", "type", "veth", "peer", "name", "quiet_in")
    run_ip("link", "set", "quiet_out", "up")
    run_ip("link", "set", "quiet_in", "up")
    running = live("-e", BOTH, "-i", f"one={DEVICE}", "-i", "other=quiet_in")
    send([udp(1), udp(2)])
    running.wait_for_lines(3)
    assert running.end() == 128 + signal.SIGINT


def test_rows_that_need_no_spark_come_while_an_unprivileged_daemon_runs(live: Any) -> None:
    running = live("-e", PACKETS, "-i", DEVICE)
    for number in range(3):
        send([udp(number)])
        running.wait_for_lines(2 + number)
    # No thread of the daemon has a capability.
    assert set(capabilities(running.daemon).values()) == {0}
    assert running.end() == 128 + signal.SIGINT
    assert "3 packets received = 3 accepted; 3 rows" in running.summary


def test_a_filter_a_count_and_a_duration_bound_it(live: Any) -> None:
    running = live("-e", PACKETS, "-i", DEVICE, "-f", "src port 1003", "-c", "2")
    send(udp(number) for number in range(40))
    assert running.wait() == 0
    assert [line.split(b",")[-1].strip() for line in running.lines[1:]] == [b"1003"] * 2
    began = time.monotonic()
    running = live("-e", PACKETS, "-i", DEVICE, "--duration", "1s")
    assert running.wait() == 0
    assert time.monotonic() - began < PATIENCE_S


def test_an_interface_that_is_not_there_is_one_sentence() -> None:
    done = run("run", "-e", PACKETS, "-i", "nix0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "unknown network interface 'nix0'" in done.stderr


def test_ndjson_comes_line_by_line(live: Any) -> None:
    running = Live("-e", PACKETS, "-i", DEVICE, "-o", "ndjson")
    try:
        # There is no heading to wait for: packets that come too early are in no row.
        running.wait_for_lines(1, lambda: send([udp(1)]))
        assert json.loads(running.lines[0])["srcPort"] == 1001
    finally:
        running.end()
