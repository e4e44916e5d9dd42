"""scapy's capture: from a scripted socket anywhere, and from a real one where it may be opened."""

from __future__ import annotations

import os
import struct
import time
from collections import deque
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.sources.af_packet.live_frames import ADDRESSES, udp_frame
from tests.capture.sources.af_packet.network import DEVICE, PATIENCE_S, own_network, send

from gscope.capture.live import devices
from gscope.capture.live.devices import Devices, is_by_scapy
from gscope.capture.settings import CaptureSettings, DeviceSettings, InterfaceSettings
from gscope.capture.sources.af_packet.source import AfPacketSource
from gscope.capture.sources.scapy_source import BLOCK_PACKETS, ScapySource
from gscope.errors import CaptureError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

# scapy warns of its own use of what Python and cryptography declare old.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SECOND = 1_000_000_000


class ScriptedListener:
    """A listening socket of scapy: a byte waits in a pipe for each packet."""

    def __init__(self, **given: object) -> None:
        from scapy.layers.l2 import Ether

        self.given = given
        self.LL = Ether
        self.packets: deque[tuple[bytes | None, float | None]] = deque()
        self._reader, self._writer = os.pipe()
        self.is_closed = False

    def put(self, data: bytes | None, seconds: float | None) -> None:
        self.packets.append((data, seconds))
        os.write(self._writer, b"\0")

    def fileno(self) -> int:
        return self._reader

    def recv_raw(self, size: int) -> tuple[object, bytes | None, float | None]:
        os.read(self._reader, 1)
        data, seconds = self.packets.popleft()
        if data == b"error":
            raise OSError(100, "network is down")
        return self.LL, data, seconds

    def close(self) -> None:
        self.is_closed = True
        os.close(self._reader)
        os.close(self._writer)


class Made:
    """A source and the listener that it opened."""

    def __init__(self, **options: Any) -> None:
        self.listeners: list[ScriptedListener] = []
        self.now_ns = 100 * SECOND
        settings: dict[str, Any] = {"snaplen": 65535, **options}
        self.source = ScapySource(
            "main", "eth0", listen=self._listen, wall_ns=lambda: self.now_ns, **settings
        )
        self.source.open()
        self.source.start()

    def _listen(self, **given: object) -> ScriptedListener:
        self.listeners.append(ScriptedListener(**given))
        return self.listeners[-1]

    @property
    def listener(self) -> ScriptedListener:
        return self.listeners[0]


@pytest.fixture
def made() -> Iterator[Made]:
    one = Made()
    yield one
    one.source.close()


def packets(source: ScapySource, timeout_s: float = 0.0) -> list[tuple[int, bytes, int]]:
    block = source.next_block(timeout_s)
    if block is None:
        return []
    found = [
        (
            int(block.time_ns[n]),
            block.data[int(block.offset[n]) :][: int(block.caplen[n])].tobytes(),
            int(block.wirelen[n]),
        )
        for n in range(block.count)
    ]
    assert set(block.linktype[: block.count]) == {1}
    source.release(block)
    return found


def test_packets_come_with_their_times_and_lengths(made: Made) -> None:
    made.listener.put(b"one" * 20, 100.5)
    made.listener.put(b"another" * 20, None)
    assert packets(made.source) == [
        (100 * SECOND + SECOND // 2, b"one" * 20, 60),
        (100 * SECOND, b"another" * 20, 140),
    ]
    assert made.source.stats.received_packets == 2
    assert made.source.stats.received_bytes == 200


def test_a_snap_length_cuts_packets() -> None:
    made = Made(snaplen=10)
    made.listener.put(b"x" * 60, 100.0)
    assert packets(made.source) == [(100 * SECOND, b"x" * 10, 60)]
    made.source.close()


def test_packets_from_before_the_start_and_outgoing_copies_are_not_there(made: Made) -> None:
    made.listener.put(b"early", 99.9)
    made.listener.put(None, None)
    made.listener.put(b"late", 100.1)
    assert [data for _, data, _ in packets(made.source)] == [b"late"]
    assert made.source.stats.received_packets == 1


def test_packets_from_before_the_start_that_get_their_time_when_read_are_not_there() -> None:
    made = Made()
    made.listener.put(b"early", None)
    made.source.start()
    made.listener.put(b"late", None)
    assert [data for _, data, _ in packets(made.source)] == [b"late"]
    assert made.source.stats.received_packets == 1
    made.source.close()


def test_a_block_has_an_end_and_what_is_left_is_no_idleness(made: Made) -> None:
    assert made.source.is_idle()
    for _ in range(BLOCK_PACKETS + 1):
        made.listener.put(b"x", 100.0)
    block = made.source.next_block(0)
    assert block is not None
    assert block.count <= BLOCK_PACKETS
    assert not made.source.is_idle()
    found = block.count
    while block is not None:
        made.source.release(block)
        block = made.source.next_block(0)
        found += 0 if block is None else block.count
    assert found == BLOCK_PACKETS + 1
    assert made.source.is_idle()


def test_waiting_ends_with_the_time_out_or_a_wake(made: Made) -> None:
    assert made.source.next_block(0.01) is None
    made.source.wake()
    began = time.monotonic()
    assert made.source.next_block(600) is None
    assert time.monotonic() - began < 300


def test_an_error_of_the_system_ends_it_with_a_sentence(made: Made) -> None:
    made.listener.put(b"error", None)
    with pytest.raises(CaptureError, match="capturing on eth0 has failed: network is down"):
        made.source.next_block(0)


def test_what_scapy_says_when_it_cannot_open_is_one_sentence() -> None:
    def listen(**given: object) -> object:
        message = "no libpcap"
        raise ValueError(message)

    source = ScapySource("main", "eth0", snaplen=100, listen=listen)
    with pytest.raises(CaptureError, match="scapy cannot capture on eth0: no libpcap"):
        source.open()
    source.close()


def test_options_reach_the_socket_and_closing_twice_is_harmless() -> None:
    made = Made(filter="udp", promiscuous=False, buffer_bytes=1 << 20)
    assert made.listener.given == {
        "iface": "eth0",
        "promisc": False,
        "filter": "udp",
        "buffer_bytes": 1 << 20,
    }
    made.source.close()
    made.source.close()
    assert made.listener.is_closed
    with pytest.raises((CaptureError, ValueError)):
        made.source.next_block(0)


@pytest.mark.parametrize(
    ("asked", "has_ring", "is_scapy"),
    [
        ("auto", True, False),
        ("auto", False, True),
        ("scapy", True, True),
        ("af_packet", True, False),
    ],
)
def test_scapy_captures_where_asked_or_where_there_is_nothing_else(
    monkeypatch: pytest.MonkeyPatch, asked: str, has_ring: bool, is_scapy: bool
) -> None:
    monkeypatch.setattr(devices, "has_packet_sockets", lambda: has_ring)
    assert is_by_scapy(DeviceSettings("eth0", source=asked)) is is_scapy


def test_what_scapy_has_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="scapy supports neither"):
        DeviceSettings("eth0", source="scapy", fanout=2)
    monkeypatch.setattr(devices, "has_packet_sockets", lambda: False)
    for device, complaint in (
        (DeviceSettings("eth0", source="af_packet"), "this system does not support AF_PACKET"),
        (DeviceSettings("eth0", fanout=2), "scapy supports neither"),
    ):
        interface = InterfaceSettings("main", skew_ns=SECOND, device=device)
        with pytest.raises(CaptureError, match=complaint):
            Devices(CaptureSettings((interface,)))


@pytest.mark.live
def test_scapy_and_the_ring_see_the_same() -> None:
    ring = AfPacketSource("ring", DEVICE, ring_bytes=4 << 20)
    with own_network(), closing(ring):
        ring.open()
        ring.start()
        settings = DeviceSettings(DEVICE, source="scapy", filter="udp or vlan")
        interface = InterfaceSettings("main", skew_ns=SECOND, device=settings)
        with Devices(CaptureSettings((interface,))) as opened:
            source = opened.sources["main"]
            assert isinstance(source, ScapySource)
            source.start()
            tagged = ADDRESSES + b"\x81\x00" + struct.pack(">H", 5) + udp_frame(99, 7)[12:]
            frames = [*(udp_frame(number, 1000 + number) for number in range(50)), tagged]
            send(frames)
            found: list[tuple[int, bytes, int]] = []
            until = time.monotonic() + PATIENCE_S
            while len(found) < len(frames) and time.monotonic() < until:
                found += packets(source, 0.2)
        assert [data for _, data, _ in found] == frames
        times: list[int] = []
        while (block := ring.next_block(0.2)) is not None:
            times += block.time_ns[: block.count].tolist()
        apart = [abs(one - other[0]) for one, other in zip(times, found, strict=True)]
        assert max(apart) < SECOND // 10, apart


@pytest.mark.live
def test_an_unknown_device_is_one_sentence() -> None:
    with own_network():
        source = ScapySource("main", "nix0", snaplen=100)
        with pytest.raises(CaptureError, match="unknown network interface 'nix0'"):
            source.open()
        source.close()
