"""A small ring whose reader stands still.

Epochs that lack packets are marked, and all others are exact. tcpdump, with a large buffer,
captures what the ring loses. A loop over its file says what each epoch should have counted.
"""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import threading
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest import mock

import pyarrow.parquet as pq
import pytest
from tests.capture.sources.af_packet.live_frames import udp_frame
from tests.capture.sources.af_packet.network import DEVICE, own_network, send
from tests.support.requirements import needs

from gscope.capture.interface.base import Feed
from gscope.capture.interface.open_log import open_log
from gscope.capture.live.devices import Devices
from gscope.capture.live.live_capture import capture_live
from gscope.capture.live.stop import LiveStop
from gscope.capture.log.log import read_log
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.settings import CaptureSettings, DeviceSettings, InterfaceSettings
from gscope.engine.steps.steps import Evaluation, Steps
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.loss_reasons import KERNEL
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gscope.capture.interface.summary import CaptureSummary
    from gscope.capture.sources.block import Block
    from gscope.queries.plan.program import Program

EPOCH_NS = 200_000_000
FLOWS = 50
QUERY = f"SELECT tb, srcPort, count(*) AS cnt FROM UDP GROUP BY time_ns/{EPOCH_NS} AS tb, srcPort"
FRAMES = [udp_frame(number, 1000 + number % FLOWS) + bytes(1300) for number in range(500)]
SO_TIMESTAMPNS = 35
PATIENCE_S = 20.0

pytestmark = [pytest.mark.live, pytest.mark.slow]


class Talk:
    """Packets that are sent now and then, and a reader that stands still while many are.

    Attributes:
        sent: number of packets sent.
        stalls: how often the reader stood still.
    """

    def __init__(self, stop: LiveStop, rings: int) -> None:
        self.sent = 0
        self.stalls = 0
        self._stop = stop
        self._rings = rings
        self._flood = threading.Event()

    def run(self) -> None:
        """Send a few packets at a time, and three times more than the ring has room for."""
        try:
            for turn in range(60):
                is_flood = turn in (15, 16, 35)
                if is_flood:
                    self._flood.set()
                for _ in range(5 * self._rings**2 + 3 if is_flood else 1):
                    self.sent += send(FRAMES if is_flood else FRAMES[:FLOWS])
                self._flood.clear()
                time.sleep(0.1)
        finally:
            self._stop.request()

    @contextmanager
    def stalls_readers(self) -> Iterator[None]:
        """A thread that processes packets while many are sent waits for the last of them."""
        process = Feed.process

        def stalled(feed: Feed, block: Block, start: int, until_ns: int) -> int:
            reached = process(feed, block, start, until_ns)
            until = time.monotonic() + PATIENCE_S
            self.stalls += self._flood.is_set()
            while self._flood.is_set() and time.monotonic() < until:
                time.sleep(0.005)
            return reached

        with mock.patch.object(Feed, "process", stalled):
            yield


@contextmanager
def witness(path: Path) -> Iterator[None]:
    """Let tcpdump capture every packet of the device, with the timestamps that the ring gets."""
    command = ["tcpdump", "-i", DEVICE, "-B", "262144", "-s", "64", "-w", str(path), "-Z", "root"]
    command += ["--time-stamp-precision=nano", "--immediate-mode", "udp"]
    # While a socket wants timestamps, the kernel stamps each packet once, for all sockets.
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as stamped:
        stamped.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        try:
            while "listening" not in (line := process.stderr.readline()):
                assert line, "tcpdump has ended"
            yield
        finally:
            process.send_signal(signal.SIGINT)
            _, report = process.communicate(timeout=PATIENCE_S)
        assert "\n0 packets dropped by kernel" in report, report


def counted_by_tcpdump(path: Path) -> Counter[tuple[int, int]]:
    """The packets of each epoch and port in a capture file."""
    data = path.read_bytes()
    assert struct.unpack_from("<I", data)[0] == 0xA1B23C4D
    found: Counter[tuple[int, int]] = Counter()
    place = 24
    while place < len(data):
        seconds, nanoseconds, length, _ = struct.unpack_from("<4I", data, place)
        (port,) = struct.unpack_from(">H", data, place + 16 + 34)
        found[(seconds * 10**9 + nanoseconds) // EPOCH_NS, port] += 1
        place += 16 + length
    return found


def counted_by_gscope(folder: Path) -> Counter[tuple[int, int]]:
    """The packets of each epoch and port, as all partial tuples together say."""
    found: Counter[tuple[int, int]] = Counter()
    for message in read_log(folder):
        if isinstance(message, Batch):
            for row in pq.read_table(folder / message.path).to_pylist():
                (count,) = (v for n, v in row.items() if n not in ("tb", "srcPort"))
                found[row["tb"], row["srcPort"]] += count
    return found


def marked_epochs(program: Program, folder: Path) -> set[int]:
    """The epochs that the job marks, all for drops of the kernel."""
    steps = Steps(program)
    steps.on_messages(read_log(folder))
    found: set[int] = set()
    while not steps.is_finished:
        assert steps.next() is not None
        steps.on_evaluated(Evaluation())
        for each in steps.incomplete.mark():
            assert each.reason == KERNEL
            assert each.first is not None
            assert each.last is not None
            assert each.packets
            found |= set(range(each.first, each.last + 1))
    return found


def captured(folder: Path, program: Program, fanout: int) -> CaptureSummary:
    device = DeviceSettings(DEVICE, ring_bytes=fanout * (2 << 20), fanout=fanout)
    settings = CaptureSettings(
        (InterfaceSettings("main", skew_ns=100_000_000, device=device),),
        heartbeat_interval_ns=100_000_000,
    )
    stop = LiveStop()
    talk, log = Talk(stop, fanout), open_log(folder / "log", program, settings)
    with own_network(), witness(folder / "full.pcap"), Devices(settings) as devices:
        actor = threading.Thread(target=talk.run)
        with talk.stalls_readers():
            summary = capture_live(
                program,
                settings,
                log,
                devices.inputs,
                stop=stop,
                observers=CaptureObservers(on_begin=actor.start),
            )
        actor.join()
    log.close()
    assert talk.stalls
    return summary


@needs("tcpdump")
@pytest.mark.parametrize("fanout", [1, 3])
def test_epochs_that_are_not_marked_are_exact(tmp_path: Path, fanout: int) -> None:
    program = compile_queries([QueryText(QUERY, "q")], CompileContext(("main",))).program
    (interface,) = captured(tmp_path, program, fanout).interfaces
    full = counted_by_tcpdump(tmp_path / "full.pcap")
    given = counted_by_gscope(tmp_path / "log")
    assert interface.dropped
    assert sum(full.values()) == sum(given.values()) + interface.dropped
    wrong = {epoch for epoch, port in full | given if full[epoch, port] != given[epoch, port]}
    marked = marked_epochs(program, tmp_path / "log")
    assert wrong
    assert wrong <= marked
    exact = {epoch for epoch, _ in full} - marked
    assert len(exact) > len(marked), "too many epochs are marked"
