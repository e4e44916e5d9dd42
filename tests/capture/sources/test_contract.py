"""Every packet source keeps the contract of ``capture/sources/base.py``.

It does so from construction to closing. A new source is tested by adding it to ``CAPTURES`` or
``LIVE``.
"""

from __future__ import annotations

import gc
import gzip
import os
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from tests.capture.sources.af_packet.live_frames import udp_frame
from tests.capture.sources.af_packet.network import DEVICE, PATIENCE_S, own_network, send
from tests.capture.sources.files.capture_bytes import (
    enhanced,
    expected_of,
    interface,
    packets_in,
    pcap_of,
    section,
)
from tests.capture.sources.test_scapy_source import ScriptedListener
from tests.capture.sources.udp.port import OnPort

from gscope.capture.sources.af_packet.fanout_rings import FanoutSource
from gscope.capture.sources.af_packet.packet_socket import Fanout
from gscope.capture.sources.af_packet.source import AfPacketSource
from gscope.capture.sources.base import (
    BlockSource,
    CaptureSource,
    InputState,
    LiveDevice,
    LiveSource,
    PacketSource,
)
from gscope.capture.sources.empty import NoPackets
from gscope.capture.sources.files.chain import ChainSource
from gscope.capture.sources.files.file import FileSource
from gscope.capture.sources.files.open import open_source
from gscope.capture.sources.files.selected import SelectedSource
from gscope.capture.sources.read_ahead import RingSource
from gscope.capture.sources.scapy_source import ScapySource
from gscope.capture.sources.synthetic.source import TrafficProfile, write_pcap
from gscope.errors import CaptureError, NoDeviceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.capture.sources.files.capture_bytes import Packet

    from gscope.capture.sources.block import Block

# scapy warns of its own use of what Python and cryptography declare old.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PAYLOADS = [bytes((number % 256,)) * (1 + number % 90) for number in range(500)]
BLOCK_BYTES = 4096


def members(protocol: type) -> set[str]:
    """The names that a protocol and those it extends declare."""
    found: set[str] = set()
    for each in protocol.__mro__:
        if each not in (Protocol, object):
            found |= {*vars(each), *each.__annotations__}
    return {name for name in found if not name.startswith("_")}


def test_the_contract_is_this() -> None:
    """So that a member without a test below is noticed."""
    common = {"name", "device", "stats", "damage", "open", "state", "ring_use", "close"}
    assert members(PacketSource) == common
    assert members(CaptureSource) == common | {"size_bytes", "next_block", "is_ready"}
    filling = {"block_bytes", "new_block", "fill", "interrupt"}
    assert members(BlockSource) == members(CaptureSource) | filling
    assert members(LiveDevice) == common | {"narrow", "start", "prepare", "failure"}
    reading = {"next_block", "release", "is_idle", "wake"}
    assert members(LiveSource) == members(LiveDevice) | reading


def open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208  # names, not paths


@contextmanager
def nothing_left() -> Iterator[None]:
    """Check that the context leaves no descriptor and no thread of its own."""
    # What earlier tests left to the garbage collector must not make room for descriptors.
    gc.collect()
    files, threads = open_files(), set(threading.enumerate())
    yield
    assert open_files() <= files
    assert set(threading.enumerate()) <= threads


def answers_without_blocking(source: PacketSource) -> None:
    """Ask what every source answers in any state."""
    assert source.name
    assert source.device
    assert isinstance(source.state(), InputState)
    use = source.ring_use()
    assert use.size_bytes >= 0
    assert 0.0 <= use.occupancy <= 1.0
    assert source.damage == []
    assert source.stats.received_packets >= 0


# Captures -----------------------------------------------------------------------------------------


def written(folder: Path, content: bytes, name: str = "capture") -> str:
    path = folder / name
    path.write_bytes(content)
    return str(path)


def pcap(folder: Path) -> FileSource:
    return FileSource(written(folder, pcap_of(PAYLOADS)), block_bytes=BLOCK_BYTES)


def pcapng(folder: Path) -> FileSource:
    packets = (enhanced(data, seconds * 10**6 + 7) for seconds, data in enumerate(PAYLOADS))
    content = section() + interface() + b"".join(packets)
    return FileSource(written(folder, content), block_bytes=BLOCK_BYTES)


def compressed(folder: Path) -> FileSource:
    content = gzip.compress(pcap_of(PAYLOADS))
    return FileSource(written(folder, content), block_bytes=BLOCK_BYTES)


def pipe(folder: Path) -> FileSource:
    path = folder / "fifo"
    os.mkfifo(path)

    def write() -> None:
        # A test that closes the source at once may be over before the pipe is opened.
        with suppress(OSError), path.open("wb") as fifo:
            fifo.write(pcap_of(PAYLOADS))

    threading.Thread(target=write, daemon=True).start()
    # The writer opens when there is a reader; the source's reads wait for its bytes.
    return FileSource(str(path), block_bytes=BLOCK_BYTES)


def selection(folder: Path) -> SelectedSource:
    return SelectedSource(pcap(folder), {1: [(0x06, 0, 0, 65535)]}, 10**9)


def chain(folder: Path) -> ChainSource:
    content = pcap_of(PAYLOADS)
    half = 24 + sum(16 + len(data) for data in PAYLOADS[:200])
    paths = [
        written(folder, content[:half], "first"),
        written(folder, content[:24] + content[half:], "second"),
    ]
    sources = [FileSource(path, block_bytes=BLOCK_BYTES) for path in paths]
    return ChainSource(sources, name="both")


def read_ahead(folder: Path) -> RingSource:
    return RingSource(pcap(folder), 3)


def empty(folder: Path) -> NoPackets:
    return NoPackets("nothing")


CAPTURES: dict[str, Callable[[Path], CaptureSource]] = {
    "pcap": pcap,
    "pcapng": pcapng,
    "gzip": compressed,
    "pipe": pipe,
    "selection": selection,
    "chain": chain,
    "read ahead": read_ahead,
    "empty": empty,
}
FILLING: dict[str, Callable[[Path], BlockSource]] = {
    "pcap": pcap,
    "pcapng": pcapng,
    "gzip": compressed,
    "chain": chain,
}


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def expected_in(kind: str) -> list[Packet]:
    return [] if kind == "empty" else expected_of(PAYLOADS)


@pytest.mark.parametrize("kind", CAPTURES)
def test_a_capture_lives_as_the_contract_says(kind: str, tmp_path: Path) -> None:
    source = CAPTURES[kind](tmp_path)
    answers_without_blocking(source)
    with nothing_left() if kind != "pipe" else nullcontext():
        source.open()
        answers_without_blocking(source)
        assert source.size_bytes == (None if kind == "pipe" else bytes_in(tmp_path))
        found: list[Packet] = []
        while (block := source.next_block()) is not None:
            assert source.state() is InputState.READING
            found += packets_in(block)
            stats = source.stats
            assert stats.received_packets == len(found)
            assert stats.received_bytes == sum(packet.wirelen for packet in found)
            overwrite(block)
        assert found == expected_in(kind)
        assert source.next_block() is None
        assert source.state() is InputState.ENDED
        assert source.is_ready(0.0)
        source.close()
        source.close()
    assert source.next_block() is None
    answers_without_blocking(source)
    assert source.stats.received_packets == len(found)


def overwrite(block: Block) -> None:
    """Change all that a caller may change of a block, which must not affect later ones."""
    block.data[:] = 0xFF
    for numbers in (block.offset, block.caplen, block.wirelen, block.time_ns, block.linktype):
        numbers[:] = -1
    block.count = 0


@pytest.mark.parametrize("kind", CAPTURES)
def test_a_capture_can_be_closed_at_any_time(kind: str, tmp_path: Path) -> None:
    for blocks in (None, 0, 1):
        folder = tmp_path / str(blocks)
        folder.mkdir()
        source = CAPTURES[kind](folder)
        if blocks is not None:
            source.open()
            for _ in range(blocks):
                source.next_block()
        source.close()
        source.close()
        assert source.next_block() is None
        answers_without_blocking(source)


@pytest.mark.parametrize("kind", FILLING)
def test_blocks_of_the_caller_can_be_filled_in_any_order(kind: str, tmp_path: Path) -> None:
    source = FILLING[kind](tmp_path)
    source.open()
    blocks = [source.new_block() for _ in range(3)]
    assert all(block.capacity_bytes >= source.block_bytes for block in blocks[:1])
    found: list[Packet] = []
    number = 0
    while source.fill(blocks[number % 3]):
        found += packets_in(blocks[number % 3])
        overwrite(blocks[(number + 1) % 3])
        number = number * 5 + 1
    assert found == expected_of(PAYLOADS)
    source.interrupt()
    assert not source.fill(blocks[0])
    source.close()


@pytest.mark.parametrize("kind", FILLING)
def test_an_interrupted_capture_ends(kind: str, tmp_path: Path) -> None:
    source = FILLING[kind](tmp_path)
    source.open()
    assert source.next_block() is not None
    source.interrupt()
    while source.next_block() is not None:
        # What was read and unpacked before.
        pass
    assert source.state() is InputState.ENDED
    source.close()


@pytest.mark.parametrize(
    "make",
    [
        FileSource,
        lambda path: ChainSource([FileSource(path), FileSource(path)], name="both"),
        lambda path: RingSource(FileSource(path)),
    ],
)
def test_a_capture_that_cannot_be_opened_holds_nothing(
    make: Callable[[str], CaptureSource], tmp_path: Path
) -> None:
    source = make(str(tmp_path / "missing"))
    with nothing_left(), pytest.raises(CaptureError):
        source.open()
    source.close()


def test_synthetic_traffic_is_a_capture_like_others(tmp_path: Path) -> None:
    path = tmp_path / "synthetic"
    size = write_pcap(TrafficProfile(flows=100, stable_flows=10), path, 3000)
    source = open_source(str(path))
    assert source.size_bytes == size
    packets = 0
    latest_ns = 0
    while (block := source.next_block()) is not None:
        packets += block.count
        assert latest_ns <= block.time_extent_ns[0]
        latest_ns = block.time_extent_ns[1]
    assert packets == source.stats.received_packets == 3000
    assert source.state() is InputState.ENDED
    source.close()
    assert source.damage == []


# Devices ------------------------------------------------------------------------------------------

FRAMES = [udp_frame(number, 1000 + number) for number in range(40)]
EARLY = udp_frame(99, 99)


class Scripted:
    """A scapy source whose packets the test writes; needs no device."""

    def __init__(self) -> None:
        self.listener: ScriptedListener | None = None
        self.source = ScapySource("main", "eth0", snaplen=65535, listen=self._listen)

    def _listen(self, **given: object) -> ScriptedListener:
        self.listener = ScriptedListener(**given)
        return self.listener

    def send(self, frames: list[bytes]) -> None:
        assert self.listener is not None
        for frame in frames:
            self.listener.put(frame, time.time())


class OnDevice:
    """A source of the test's own device."""

    def __init__(self, source: LiveSource) -> None:
        self.source = source

    def send(self, frames: list[bytes]) -> None:
        send(frames)


def ring(device: str) -> LiveSource:
    return AfPacketSource("main", device, ring_bytes=4 << 20)


def scapy(device: str) -> LiveSource:
    return ScapySource("main", device, snaplen=65535)


LIVE: dict[str, Callable[[str], LiveSource]] = {"af_packet": ring, "scapy": scapy}
HERE: dict[str, Callable[[], Scripted | OnPort]] = {"scripted": Scripted, "udp": OnPort}
"""Sources that need no network of their own."""


@contextmanager
def stage_of(kind: str) -> Iterator[Any]:
    network: AbstractContextManager[None] = nullcontext() if kind in HERE else own_network()
    with network:
        stage = HERE[kind]() if kind in HERE else OnDevice(LIVE[kind](DEVICE))
        try:
            yield stage
        finally:
            stage.source.close()
            if isinstance(stage, OnPort):
                stage.close()


def receive(source: LiveSource, count: int) -> list[bytes]:
    """The next packets, each block of which is released."""
    found: list[bytes] = []
    until = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < until:
        block = source.next_block(0.2)
        if block is not None:
            assert not source.is_idle()
            found += [packet.data for packet in packets_in(block)]
            overwrite(block) if isinstance(source, ScapySource) else None
            source.release(block)
            source.release(block)
    return found


@pytest.mark.parametrize(
    "kind", [*HERE, *(pytest.param(kind, marks=pytest.mark.live) for kind in LIVE)]
)
def test_a_live_source_lives_as_the_contract_says(kind: str) -> None:
    with stage_of(kind) as stage:
        source: LiveSource = stage.source
        packets = stage.packets(FRAMES) if isinstance(stage, OnPort) else FRAMES
        answers_without_blocking(source)
        with nothing_left():
            source.open()
            answers_without_blocking(source)
            assert source.state() is InputState.UP
            stage.send([EARLY])
            source.start()
            stage.send(FRAMES)
            assert not source.prepare()
            assert receive(source, len(FRAMES)) == packets
            stats = source.stats
            assert stats.received_packets == len(FRAMES)
            assert (stats.dropped_packets, stats.filtered_packets) == (0, 0)
            assert stats.received_bytes == sum(map(len, packets))
            assert source.is_idle()
            assert source.next_block(0.01) is None
            assert source.failure == ""
            alarm = threading.Timer(0.05, source.wake)
            alarm.start()
            began = time.monotonic()
            assert source.next_block(600) is None
            assert time.monotonic() - began < 300
            alarm.join()
            source.close()
            source.close()
        source.wake()
        with pytest.raises(CaptureError):
            source.next_block(0)
        answers_without_blocking(source)
        assert source.stats.received_packets == len(FRAMES)


@pytest.mark.live
def test_rings_of_one_device_live_as_the_contract_says() -> None:
    with own_network():
        rings = [
            AfPacketSource("main", DEVICE, ring_bytes=2 << 20, fanout=Fanout()) for _ in range(2)
        ]
        source = FanoutSource("main", rings)
        device: LiveDevice = source
        answers_without_blocking(device)
        with nothing_left():
            device.open()
            assert len({each.fanout_group for each in rings}) == 1
            assert device.state() is InputState.UP
            assert device.ring_use().size_bytes == 4 << 20
            send([EARLY])
            device.start()
            send(FRAMES)
            assert not device.prepare()
            until = time.monotonic() + PATIENCE_S
            found: list[bytes] = []
            while len(found) < len(FRAMES) and time.monotonic() < until:
                for each in rings:
                    block = each.next_block(0.05)
                    found += [] if block is None else [p.data for p in packets_in(block)]
            assert sorted(found) == sorted(FRAMES)
            assert device.stats.received_packets == len(FRAMES)
            assert device.failure == ""
            device.close()
            device.close()
        answers_without_blocking(device)


@pytest.mark.live
@pytest.mark.parametrize("kind", [*LIVE, "fanout"])
def test_a_device_that_cannot_be_opened_leaves_nothing_open(kind: str) -> None:
    with own_network():
        source: LiveDevice = (
            FanoutSource("main", [AfPacketSource("main", "nix0", fanout=Fanout())])
            if kind == "fanout"
            else LIVE[kind]("nix0")
        )
        if kind == "scapy":
            # Loads scapy, which keeps sockets of its own.
            with pytest.raises(NoDeviceError):
                scapy("nix0").open()
        with nothing_left(), pytest.raises(NoDeviceError):
            source.open()
        source.close()
