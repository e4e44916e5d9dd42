"""A UDP port of this machine, and a sender of datagrams to it."""

from __future__ import annotations

import socket
import struct
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gscope.capture.sources.udp.source import UdpSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gscope.capture.sources.base import LiveSource
    from gscope.capture.sources.block import Block

PATIENCE_S = 10.0


def free_port(host: str = "127.0.0.1") -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


@contextmanager
def sender(port: int, host: str = "127.0.0.1") -> Iterator[Callable[[Iterable[bytes]], None]]:
    """Sends datagrams; on the loopback they have been delivered when it returns."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as opened:

        def send(datagrams: Iterable[bytes]) -> None:
            for each in datagrams:
                opened.sendto(each, (host, port))

        yield send


def blocks(source: LiveSource) -> Iterator[Block]:
    """The blocks of what has come, each of which is released."""
    until = time.monotonic() + PATIENCE_S
    while not source.is_idle():
        assert time.monotonic() < until
        block = source.next_block(0)
        if block is not None:
            yield block
            source.release(block)


class OnPort:
    """A source of a UDP port, to which frames are sent as datagrams."""

    def __init__(self) -> None:
        self._sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sender.bind(("127.0.0.1", 0))
        self._port = free_port()
        self.source = UdpSource("main", f"udp://127.0.0.1:{self._port}")

    def send(self, frames: list[bytes]) -> None:
        for frame in frames:
            self._sender.sendto(frame, ("127.0.0.1", self._port))

    def packets(self, frames: list[bytes]) -> list[bytes]:
        """The packets that the source makes of datagrams."""
        ip = struct.Struct(">BBHIBBH4s4s")
        port = self._sender.getsockname()[1]
        return [
            ip.pack(0x45, 0, 28 + len(f), 0, 64, 17, 0, b"\x7f\0\0\1", bytes(4))
            + struct.pack(">4H", port, 2055, 8 + len(f), 0)
            + f
            for f in frames
        ]

    def close(self) -> None:
        self._sender.close()
