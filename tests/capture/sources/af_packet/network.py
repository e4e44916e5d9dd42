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
from typing import TYPE_CHECKING

from tests.support.requirements import require, skip_as_refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gscope.capture.sources.af_packet.source import AfPacketSource

SENDER, DEVICE = "veth_out", "veth_in"

_CAPABILITY_VERSION_3 = 0x20080522
_CLONE_NEWNET = 0x40000000
_SOL_PACKET, _PACKET_QDISC_BYPASS = 263, 20
PATIENCE_S = 10.0


@contextmanager
def own_network() -> Iterator[None]:
    """Move this thread, and what it starts, to a new network namespace, and back at the end.

    Skips the test where that is not allowed.
    """
    require("ip")
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open("rb") as home:
        if libc.unshare(_CLONE_NEWNET) != 0:
            skip_as_refused(f"a network namespace ({os.strerror(ctypes.get_errno())})")
        try:
            _keep_quiet()
            add_pair()
            yield
        finally:
            assert libc.setns(home.fileno(), _CLONE_NEWNET) == 0


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
