"""Datagrams of a UDP port.

What arrives, when, from whom, what is lost, and what cannot be opened.
"""

from __future__ import annotations

import errno
import socket
import struct
import time
from ipaddress import ip_address
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.files.capture_bytes import packets_in
from tests.capture.sources.udp.port import blocks, free_port, sender
from tests.support.requirements import skip_as_refused

from gscope.capture.sources.udp.source import UdpSource
from gscope.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def source(port: int) -> Iterator[UdpSource]:
    made = UdpSource("main", f"udp://127.0.0.1:{port}")
    made.open()
    made.start()
    yield made
    made.close()


def read(source: UdpSource) -> list[bytes]:
    return [packet.data for block in blocks(source) for packet in packets_in(block)]


def test_datagrams_of_all_sizes_arrive_in_order(source: UdpSource, port: int) -> None:
    sizes = [0, 1, 17, 1472, 9000, 65507, 48]
    payloads = [bytes((n + 1,)) * size for n, size in enumerate(sizes)] * 60
    with sender(port) as send:
        for begin in range(0, len(payloads), 3):
            # They fit into the buffer that every process is granted.
            some = payloads[begin : begin + 3]
            send(some)
            assert [packet[28:] for packet in read(source)] == some
    assert source.stats.received_packets == len(payloads)
    assert source.stats.received_bytes == sum(28 + len(each) for each in payloads)
    assert source.damage == []


def test_times_are_those_of_arrival(source: UdpSource, port: int) -> None:
    # The kernel starts to stamp all that arrives a moment after the first socket has asked for it.
    time.sleep(0.01)
    with sender(port) as send:
        marks = []
        for number in range(20):
            marks.append(time.time_ns())
            send([b"x" * number])
        marks.append(time.time_ns())
    times = [int(t) for block in blocks(source) for t in block.time_ns[: block.count]]
    assert len(times) == 20
    for number, found in enumerate(times):
        assert marks[number] - 1_000_000 <= found <= marks[number + 1] + 1_000_000


@pytest.mark.live
def test_one_socket_receives_from_both_families() -> None:
    try:
        port = free_port("::1")
    except OSError:
        skip_as_refused("an IPv6 address of the loopback")
    source = UdpSource("main", f"udp://:{port}")
    source.open()
    source.start()
    with sender(port) as send, sender(port, "::1") as send6:
        send([b"four"])
        send6([b"six"])
        send([b"four again"])
    first, second, third = read(source)
    assert (first[0] >> 4, second[0] >> 4, third[0] >> 4) == (4, 6, 4)
    assert ip_address(first[12:16]) == ip_address("127.0.0.1")
    assert ip_address(second[8:24]) == ip_address("::1")
    assert struct.unpack(">HB", second[4:7]) == (8 + 3, 17)
    assert (first[28:], second[48:], third[28:]) == (b"four", b"six", b"four again")
    source.close()


def test_what_finds_no_room_is_counted(port: int) -> None:
    source = UdpSource("main", f"udp://127.0.0.1:{port}", buffer_bytes=65536)
    source.open()
    source.start()
    assert source.ring_use().size_bytes == 65536
    assert not source.prepare()
    with sender(port) as send:
        send([b"x" * 1000] * 500)
        assert source.ring_use().occupancy > 0.5
        found = read(source)
        stats = source.stats
        assert stats.dropped_packets > 0
        assert len(found) + stats.dropped_packets == stats.received_packets == 500
        assert source.ring_use().occupancy == 0.0
        send([b"y"])
        assert [each[28:] for each in read(source)] == [b"y"]
    assert stats.received_packets == 501
    source.close()


def test_a_start_that_has_lost_something_begins_again(port: int) -> None:
    source = UdpSource("main", f"udp://127.0.0.1:{port}", buffer_bytes=65536)
    source.open()
    with sender(port) as send:
        send([b"early"] * 3)
        source.start()
        send([b"x" * 1000] * 500)
        assert source.prepare()
        assert source.is_idle()
        send([b"after"])
    assert [each[28:] for each in read(source)] == [b"after"]
    assert (source.stats.received_packets, source.stats.dropped_packets) == (1, 0)
    source.close()


def test_a_buffer_that_the_kernel_has_not_granted_is_named_when_it_was_full(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grant_little(of: socket.socket, _wanted_bytes: int) -> None:
        of.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32768)

    # As without CAP_NET_ADMIN, where net.core.rmem_max is small.
    monkeypatch.setattr("gscope.capture.sources.udp.udp_socket._set_buffer", grant_little)
    source = UdpSource("main", f"udp://127.0.0.1:{port}", buffer_bytes=8 << 20)
    source.open()
    source.start()
    assert source.damage == []
    with sender(port) as send:
        send([b"x" * 1400] * 100)
    read(source)
    (sentence,) = source.damage
    assert "the kernel's buffer has 64 KiB instead of 8192" in sentence
    assert f"net.core.rmem_max={4 << 20}" in sentence
    source.close()


def test_a_kernel_without_ipv6_receives_ipv4_on_all_addresses(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_ipv6(family: socket.AddressFamily) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "as with ipv6.disable=1")
        return socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)

    monkeypatch.setattr("gscope.capture.sources.udp.udp_socket._made", without_ipv6)
    source = UdpSource("main", f"udp://:{port}")
    source.open()
    source.start()
    with sender(port) as send:
        send([b"four"])
    assert [each[28:] for each in read(source)] == [b"four"]
    source.close()
    with pytest.raises(CaptureError, match=r"cannot receive on udp://\[::\]"):
        UdpSource("main", f"udp://[::]:{port}").open()


def test_a_port_in_use(source: UdpSource, port: int) -> None:
    other = UdpSource("other", f"udp://127.0.0.1:{port}")
    with pytest.raises(CaptureError, match=f"another process receives on port {port}"):
        other.open()
    other.close()
    source.close()
    other.open()
    other.close()


def test_an_address_of_another_machine() -> None:
    source = UdpSource("main", "udp://192.0.2.77:2055")
    with pytest.raises(CaptureError, match=r"192\.0\.2\.77 is not an address of this machine"):
        source.open()


def test_datagrams_may_collect_before_they_are_taken(source: UdpSource, port: int) -> None:
    with sender(port) as send:
        send([b"a"])
        assert source.next_block(1) is not None
        began = time.monotonic()
        send([b"b"] * 5)
        block = source.next_block(1)
        assert block is not None
        assert block.count == 5
        # A source that does not wait for more takes a fraction of that.
        assert time.monotonic() - began >= 0.002
