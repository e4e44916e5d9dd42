"""A network namespace for one test, with a pair of virtual Ethernet devices."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from unittest import mock

from tests.support.home_network import enter, leave_home, threads_here
from tests.support.requirements import require, skip_as_refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gscope.capture.sources.af_packet.source import AfPacketSource

SENDER, DEVICE = "veth_out", "veth_in"

_CAPABILITY_VERSION_3 = 0x20080522
_SOL_PACKET, _PACKET_QDISC_BYPASS = 263, 20
PATIENCE_S = 10.0


@contextmanager
def own_network() -> Iterator[None]:
    """Move this thread, and what it starts, to a new network namespace, and back at the end.

    Threads stay in the namespace in which they were started. Those that a test starts here must end
    here. Flight shares its threads among all clients of a process, so that a client would connect
    in the network of an earlier test: it belongs into a process of its own, as in
    ``tests/faults/sensor_reader.py``. Skips the test where a namespace is not allowed.
    """
    require("ip")
    with Path("/proc/thread-self/ns/net").open("rb") as home:
        if error := leave_home():
            skip_as_refused(f"a network namespace ({os.strerror(error)})")
        try:
            _keep_quiet()
            add_pair()
            with mock.patch("pyarrow.flight.connect", _refuse):
                yield
            left = threads_here()
            assert not left, f"these threads outlive the network of the test: {left}"
        finally:
            enter(home.fileno())


def _refuse(*_: object, **__: object) -> NoReturn:
    message = "Flight's threads are in another network: read in a process of the reader's own"
    raise AssertionError(message)


def _keep_quiet() -> None:
    """Let the kernel send nothing by itself."""
    switch = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
    if switch.exists():
        switch.write_text("1")


def add_pair() -> None:
    run_ip("link", "add", SENDER, "type", "veth", "peer", "name", DEVICE)
    run_ip("link", "set", SENDER, "up")
    run_ip("link", "set", DEVICE, "up")


def run_ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


def drop_capabilities() -> None:
    """Take all capabilities from this thread, for ever."""
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.capset(header, bytes(24)) == 0


def send(frames: Iterable[bytes], device: str = SENDER, *, is_queued: bool = False) -> int:
    """Send the frames one after the other; how many there were.

    Args:
        frames: from their link header on.
        device: by which they leave.
        is_queued: go through the device's queue, where sockets see what leaves; it loses all frames
            for a moment after the device has come up.
    """
    count = 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, not is_queued)
        sender.bind((device, 0))
        for frame in frames:
            sender.send(frame)
            count += 1
    return count


def receive(source: AfPacketSource, count: int) -> list[bytes]:
    """The next ``count`` packets, which must come, and what else is in their blocks."""
    found: list[bytes] = []
    until = time.monotonic() + PATIENCE_S
    while len(found) < count:
        assert time.monotonic() < until, f"{len(found)} of {count} packets have come"
        block = source.next_block(0.2)
        if block is not None:
            found += [
                block.data[int(block.offset[at]) :][: int(block.caplen[at])].tobytes()
                for at in range(block.count)
            ]
    return found


def wait_for(condition: Callable[[], bool], source: AfPacketSource) -> None:
    """Let the source run until the condition holds; there must be no packets meanwhile."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until
        assert source.next_block(0.02) is None
