from __future__ import annotations

import ctypes
import errno
import fcntl
import random
import struct
import time
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from tests.capture.sources.af_packet.live_frames import numbered_frame, udp_frame
from tests.capture.sources.af_packet.network import (
    DEVICE,
    PATIENCE_S,
    SENDER,
    receive,
    run_ip,
    send,
)

from gscope.capture.sources.af_packet.kernel_api import SIOCGHWTSTAMP, SIOCSHWTSTAMP
from gscope.capture.sources.af_packet.packet_socket import Fanout, read_statistics
from gscope.capture.sources.af_packet.ring import LEAST_BLOCK_BYTES, RETIRE_MS
from gscope.errors import CaptureError, UsageError

if TYPE_CHECKING:
    from tests.capture.sources.af_packet.conftest import Opener

pytestmark = pytest.mark.live


def test_frames_arrive_bit_by_bit_in_their_order(live: Opener) -> None:
    source = live()
    rng = random.Random(1)
    frames = [numbered_frame(number, rng.randint(18, 1514)) for number in range(5000)]
    found = []
    for at in range(0, len(frames), 500):
        send(frames[at : at + 500])
        found += receive(source, 500)
    assert found == frames
    assert source.linktype == 1
    stats = source.stats
    assert (stats.received_packets, stats.dropped_packets, stats.kernel_packets) == (5000, 0, 5000)
    assert stats.received_bytes == sum(map(len, frames))


def test_times_are_the_kernel_s_and_rise(live: Opener) -> None:
    source = live()
    began = time.time_ns()
    send(numbered_frame(number, 60) for number in range(100))
    block = source.next_block(5)
    assert block is not None
    times = block.time_ns[: block.count].tolist()
    assert began <= times[0]
    assert times == sorted(times)
    assert times[-1] <= time.time_ns()


@pytest.mark.parametrize(
    "tags",
    [
        b"\x81\x00\x00\x05",
        b"\x81\x00\x00\x00",
        b"\x81\x00\xff\xff",
        b"\x88\xa8\x00\x07",
        b"\x88\xa8\x00\x07\x81\x00\x20\x09",
        b"\x81\x00\x00\x01\x81\x00\x00\x02",
    ],
)
def test_tags_are_in_the_frame_as_on_the_wire(live: Opener, tags: bytes) -> None:
    frame = numbered_frame(1, 90, tags + b"\x08\x00")
    source = live()
    send([frame, numbered_frame(2, 60)])
    assert receive(source, 2) == [frame, numbered_frame(2, 60)]


def test_packets_are_cut_to_the_snap_length_and_keep_their_wire_length(live: Opener) -> None:
    source = live(snaplen=40)
    tagged = numbered_frame(1, 104, b"\x81\x00\x00\x05")
    send([numbered_frame(0, 100), tagged, numbered_frame(2, 30)])
    block = source.next_block(5)
    assert block is not None
    assert block.wirelen[:3].tolist() == [100, 104, 30]
    assert block.caplen[:3].tolist() == [40, 40, 30]
    begin = int(block.offset[1])
    assert block.data[begin : begin + 40].tobytes() == tagged[:40]


def test_the_largest_frames_fit(live: Opener) -> None:
    for device in (SENDER, DEVICE):
        run_ip("link", "set", device, "mtu", "65535")
    source = live()
    frames = [numbered_frame(number, 65_535 + 14) for number in range(20)]
    send(frames)
    assert receive(source, 20) == frames


def test_what_a_stalled_consumer_loses_is_counted_exactly(live: Opener) -> None:
    source = live(ring_bytes=2 << 20)
    held = send(numbered_frame(number, 1000) for number in range(10))
    assert receive(source, 10) == [numbered_frame(number, 1000) for number in range(10)]
    sent = held + send(numbered_frame(number, 1000) for number in range(4000))
    handed = held
    while (block := source.next_block(0.3)) is not None:
        handed += block.count
    stats = source.stats
    assert stats.dropped_packets > 0
    assert stats.frozen_total > 0
    assert sent == handed + stats.dropped_packets == stats.received_packets == stats.kernel_packets
    send([numbered_frame(7, 60)])
    assert receive(source, 1) == [numbered_frame(7, 60)]


@pytest.mark.slow
def test_a_reader_that_stands_still_on_a_quiet_interface_loses_nothing(live: Opener) -> None:
    """Each packet takes a whole block of the ring."""
    source = live(ring_bytes=64 << 20)
    frames = [numbered_frame(number, 60) for number in range(75)]
    for each in frames:
        send([each])
        time.sleep((RETIRE_MS + 3) / 1000)
    use = source.ring_use()
    assert use.occupancy * use.size_bytes > 64 * LEAST_BLOCK_BYTES
    assert receive(source, len(frames)) == frames
    assert source.stats.dropped_packets == 0


@pytest.mark.parametrize("ring_bytes", [2 << 20, 8 << 20])
def test_a_ring_that_fills_many_times_hands_over_every_packet(
    live: Opener, ring_bytes: int
) -> None:
    """Several blocks are taken as one, also where the ring starts over."""
    source = live(ring_bytes=ring_bytes)
    frames = [numbered_frame(number, 1400) for number in range(500)]
    largest = 0
    for _ in range(3 * ring_bytes // (500 * 1500) + 3):
        send(frames)
        found: list[bytes] = []
        while len(found) < len(frames):
            more = receive(source, 1)
            largest = max(largest, len(more))
            found += more
        assert found == frames
    assert source.stats.dropped_packets == 0
    is_joined = largest * 1400 > LEAST_BLOCK_BYTES
    assert is_joined == (ring_bytes == 8 << 20)


@pytest.mark.parametrize("ring_bytes", [2 << 20, 64 << 20])
@pytest.mark.parametrize("span_s", [0.0, 0.002, 0.03])
@pytest.mark.parametrize("timeout_s", [0.005, 0.2])
def test_a_reader_rests_while_a_busy_interface_fills_as_many_blocks_as_it_takes(
    live: Opener, ring_bytes: int, span_s: float, timeout_s: float
) -> None:
    source = live(ring_bytes=ring_bytes)
    rests: list[int] = []
    source._poll_signals = mock.Mock(poll=rests.append)
    span_ms = 0.0
    until = time.monotonic() + PATIENCE_S
    while not span_ms:  # the kernel may close a block between two packets
        assert time.monotonic() < until
        send([numbered_frame(1, 60)])
        time.sleep(span_s)
        send([numbered_frame(2, 60)])
        rests.clear()
        block = source.next_block(5)
        assert block is not None
        if block.count == 2:
            span_ms = int(block.time_ns[1] - block.time_ns[0]) / 1e6
        elif source.next_block(5) is None:
            pytest.fail("the second packet has not come")
    rests.clear()
    assert source.next_block(timeout_s) is None
    taken = 4 if ring_bytes == 64 << 20 else 1
    if taken > 1 and 1 <= taken * span_ms < RETIRE_MS:
        assert rests == [pytest.approx(min(taken * span_ms, timeout_s * 1000), abs=1)]
    else:
        assert not rests


def test_a_block_in_hand_is_not_written_to(live: Opener) -> None:
    source = live(ring_bytes=2 << 20)
    send([numbered_frame(1, 1000)])
    block = source.next_block(5)
    assert block is not None
    send(numbered_frame(number, 1000) for number in range(4000))
    begin = int(block.offset[0])
    assert block.data[begin : begin + 1000].tobytes() == numbered_frame(1, 1000)


def test_loopback_shows_each_packet_once(live: Opener) -> None:
    run_ip("link", "set", "lo", "up")
    source = live("lo")
    frames = [udp_frame(number, 7) for number in range(10)]
    send(frames, "lo", is_queued=True)
    assert receive(source, 10) == frames
    assert source.next_block(0.2) is None
    assert source.stats.received_packets == 10 + source.stats.filtered_packets


def test_any_shows_all_interfaces_under_cooked_headers(live: Opener) -> None:
    run_ip("link", "set", "lo", "up")
    source = live("any")
    assert source.linktype == 113
    plain = udp_frame(2, 7)
    tagged = plain[:12] + b"\x81\x00\x00\x05" + plain[12:]
    found: set[tuple[bytes, bytes, bytes]] = set()
    until = time.monotonic() + PATIENCE_S
    while len(found) < 3:
        assert time.monotonic() < until
        send([udp_frame(1, 7)], "lo", is_queued=True)
        send([tagged], SENDER, is_queued=True)
        found |= {(data[:2], data[14:18], data[-4:]) for data in receive(source, 1)}
    # Of loopback as it arrives, to a group, and not as it leaves; of the pair both, to all.
    assert found == {
        (b"\0\x02", b"\x08\0\x45\0", b"\0\0\0\x01"),
        (b"\0\x01", b"\x81\0\0\x05", b"\0\0\0\x02"),
        (b"\0\x04", b"\x81\0\0\x05", b"\0\0\0\x02"),
    }
    assert source.stats.filtered_packets > 0


def test_sources_of_a_group_share_the_packets_flow_by_flow(live: Opener) -> None:
    group = Fanout(4711)
    sources = [live(fanout=group), live(fanout=group)]
    flows = 64
    send(udp_frame(number, 1000 + number % flows) for number in range(10 * flows))
    ports = []
    counts = []
    for source in sources:
        found: list[bytes] = []
        while (block := source.next_block(0.3)) is not None:
            found += [block.data[int(at) :][:46].tobytes() for at in block.offset[: block.count]]
        ports.append({packet[34:36] for packet in found})
        counts.append(len(found))
    assert sum(counts) == 10 * flows
    assert all(counts)
    assert not ports[0] & ports[1]


def test_statistics_start_again_when_they_are_read(live: Opener) -> None:
    source = live()
    send([numbered_frame(1, 60)])
    receive(source, 1)
    assert source._socket is not None
    assert read_statistics(source._socket) == (0, 0, 0)


def test_a_device_without_a_clock_is_refused_hardware_time(live: Opener) -> None:
    with pytest.raises(CaptureError, match=f"{DEVICE} cannot timestamp all packets"):
        live(hardware_time=True)
    with pytest.raises(CaptureError, match="any cannot timestamp all packets"):
        live("any", hardware_time=True)


def test_a_device_with_a_clock_is_made_to_stamp_all_packets(
    live: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = []

    def ioctl(of: Any, command: int, asked: bytes) -> bytes:
        if command in (SIOCGHWTSTAMP, SIOCSHWTSTAMP):
            (address,) = struct.unpack_from("P", asked, 16)
            config = ctypes.string_at(address, 12)
            commands.append((command, struct.unpack("3i", config)))
            return asked
        return real(of, command, asked)

    real = fcntl.ioctl
    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    source = live(hardware_time=True)
    assert commands == [(SIOCGHWTSTAMP, (0, 0, 0)), (SIOCSHWTSTAMP, (0, 0, 1))]
    send([numbered_frame(1, 60)])
    # What the card does not stamp, the kernel does.
    assert receive(source, 1) == [numbered_frame(1, 60)]
    assert source.stats.hardware_time_packets == 0


def test_hardware_time_needs_a_privilege_of_its_own(
    live: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ioctl(of: Any, command: int, asked: bytes) -> bytes:
        if command in (SIOCGHWTSTAMP, SIOCSHWTSTAMP):
            raise PermissionError(errno.EPERM, "no")
        return real(of, command, asked)

    real = fcntl.ioctl
    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    with pytest.raises(CaptureError, match=r"requires CAP_NET_ADMIN: .*\+net_admin"):
        live(hardware_time=True)


@pytest.mark.parametrize("option", [{"ring_bytes": 1000}, {"ring_bytes": 1 << 32}, {"snaplen": 0}])
def test_sizes_that_cannot_be_are_refused(live: Opener, option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"invalid (ring size|snap length) .*: expected "):
        live(**option)


def test_time_counts_as_waited_only_while_no_packet_is_there(live: Opener) -> None:
    source = live()
    began_s = time.monotonic()
    assert source.next_block(0.1) is None
    passed_ns = (time.monotonic() - began_s) * 1e9
    waited_ns = source.stats.waited_ns
    assert waited_ns is not None
    assert 0.09e9 < waited_ns <= passed_ns
    # Several blocks of the ring: the reader does not wait while the second is there.
    send(numbered_frame(number, 1400) for number in range(3000))
    assert source.next_block(PATIENCE_S) is not None
    waited_ns = source.stats.waited_ns
    assert source.next_block(PATIENCE_S) is not None
    assert source.stats.waited_ns == waited_ns
