"""The datagrams of a UDP port, as packets."""

from __future__ import annotations

import os
import select
import threading
import time
from typing import TYPE_CHECKING

from gscope.capture.sources.base import NO_RING, InputState, RingUse, SourceStats
from gscope.capture.sources.udp.address import UdpAddress
from gscope.capture.sources.udp.udp_socket import let_in, memory_of, open_socket, shut_out
from gscope.errors import CaptureError
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    import socket

    from gscope.capture.sources.block import Block
    from gscope.capture.sources.udp.datagrams import DatagramBuffer
    from gscope.queries.plan.split.kernel_filter import Condition

DEFAULT_BUFFER_BYTES = 64 << 20

PAUSE_S = 0.005
"""How long datagrams may collect before they are taken, so that a block has several."""

_MEMORY_OF_DATAGRAM = 2304
"""What a datagram of one frame takes of the kernel's buffer, in bytes."""
_FEW = 64
"""Datagrams of a block after which a pause is worth it; a call receives up to four times as
many."""
_COUNTER_MASK = (1 << 32) - 1


class UdpSource:
    """Datagrams that arrive on a UDP port, each with headers of IP and UDP; see ``LiveSource``.

    ``stats.dropped_packets`` found no room in the kernel's buffer, or were damaged. The size of
    that buffer is a wish: ``ring_use`` says what the kernel has granted.

    Args:
        name: what the user calls the interface.
        device: the address, see ``UdpAddress``.
        buffer_bytes: size of the kernel's buffer.

    Raises:
        ValueError: ``device`` is not such an address.
    """

    def __init__(self, name: str, device: str, *, buffer_bytes: int = DEFAULT_BUFFER_BYTES) -> None:
        self.name = name
        self.device = device
        self.stats = SourceStats(waited_ns=0)
        self._address = UdpAddress.parse(device)
        self._wanted_bytes = buffer_bytes
        self._granted_bytes = 0
        self._drops = 0
        self._socket: socket.socket | None = None
        self._buffer: DatagramBuffer | None = None
        self._held: Block | None = None
        self._may_pause = False
        self._received_at = 0.0
        self._poll = select.poll()
        self._pause = select.poll()
        # Keeps the descriptor open while another thread writes to it.
        self._lock = threading.Lock()
        self._interruption = -1

    @property
    def damage(self) -> list[str]:
        """See ``PacketSource``."""
        if not self.stats.dropped_packets or self._granted_bytes >= self._wanted_bytes:
            return []
        return [
            f"{self.name}: the kernel's buffer has {self._granted_bytes >> 10} KiB instead of"
            f" {self._wanted_bytes >> 10}, and was full: raise it with"
            f" `sysctl -w net.core.rmem_max={self._wanted_bytes // 2}`"
        ]

    @property
    def failure(self) -> str:
        """See ``LiveDevice``: a socket needs no device to stay."""
        return ""

    def open(self) -> None:
        """See ``PacketSource``."""
        self._socket = open_socket(self._address, self.device, self._wanted_bytes)
        self._interruption = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll.register(self._socket, select.POLLIN)
        self._poll.register(self._interruption, select.POLLIN)
        self._pause.register(self._interruption, select.POLLIN)
        _, self._granted_bytes, _ = memory_of(self._socket)

    def narrow(self, condition: Condition) -> None:
        """See ``LiveDevice``: all datagrams of a port are wanted."""

    def start(self) -> None:
        """See ``LiveDevice``."""
        opened = self._opened()
        let_in(opened)
        _, _, self._drops = memory_of(opened)

    def prepare(self) -> bool:
        """See ``LiveDevice``."""
        buffer = self._made_buffer()
        buffer.index(0, 0)
        self._count_loss()
        if not self.stats.dropped_packets:
            return False
        opened = self._opened()
        shut_out(opened)
        while buffer.receive(opened.fileno()):
            pass
        self.stats.received_packets = self.stats.dropped_packets = 0
        self.start()
        return True

    def next_block(self, timeout_s: float) -> Block | None:
        """See ``LiveSource``."""
        self._held = None
        deadline = time.monotonic() + timeout_s
        opened, buffer = self._opened(), self._made_buffer()
        try:
            self._let_collect(deadline)
            while not (count := buffer.receive(opened.fileno())):
                if not self._wait(deadline):
                    self._count_loss()
                    return None
        except OSError as error:
            message = f"receiving on {self.device} has failed: {os_reason(error)}"
            raise CaptureError(message) from error
        self._received_at = time.monotonic()
        # More may come during a pause than has room, or than one call takes.
        has_room = count * _MEMORY_OF_DATAGRAM * 8 <= self._granted_bytes
        self._may_pause = has_room and count <= _FEW
        self._held = block = buffer.index(count, time.time_ns())
        self.stats.received_packets += count
        self.stats.received_bytes += block.wire_bytes
        self._count_loss()
        return block

    def release(self, block: Block) -> None:
        """See ``LiveSource``: datagrams were copied."""
        if block is self._held:
            self._held = None

    def is_idle(self) -> bool:
        """See ``LiveSource``."""
        return self._held is None and not _is_readable(self._opened())

    def wake(self) -> None:
        """See ``LiveSource``."""
        with self._lock:
            if self._interruption >= 0:
                os.eventfd_write(self._interruption, 1)

    def state(self) -> InputState:
        """See ``PacketSource``."""
        return InputState.GONE if self._socket is None else InputState.UP

    def ring_use(self) -> RingUse:
        """See ``PacketSource``; the kernel releases what was read with a delay."""
        if self._socket is None:
            return NO_RING
        used_bytes, size_bytes, _ = memory_of(self._socket)
        occupancy = min(1.0, used_bytes / size_bytes) if _is_readable(self._socket) else 0.0
        return RingUse(size_bytes, occupancy)

    def close(self) -> None:
        """See ``PacketSource``."""
        if self._socket is not None:
            self._count_loss()
            self._socket.close()
            self._socket = None
        self._buffer = None
        with self._lock:
            if self._interruption >= 0:
                os.close(self._interruption)
                self._interruption = -1

    def _opened(self) -> socket.socket:
        if self._socket is None:
            message = f"{self.name} is not open"
            raise CaptureError(message)
        return self._socket

    def _made_buffer(self) -> DatagramBuffer:
        """Return the buffer.

        Its kernel loads numba, which opening the socket should not wait for.
        """
        if self._buffer is None:
            from gscope.capture.sources.udp.datagrams import DatagramBuffer

            self._buffer = DatagramBuffer()
        return self._buffer

    def _count_loss(self) -> None:
        self.stats.drops_read_ns = time.time_ns()
        _, _, drops = memory_of(self._opened())
        dropped = (drops - self._drops) & _COUNTER_MASK
        self._drops = drops
        self.stats.dropped_packets += dropped
        self.stats.received_packets += dropped

    def _let_collect(self, deadline: float) -> None:
        """Wait until ``PAUSE_S`` after the last block, at the deadline, or when woken."""
        now = time.monotonic()
        until = min(self._received_at + PAUSE_S, deadline)
        if self._may_pause and until > now:
            self._pause.poll((until - now) * 1000)
            self.stats.waited_ns = (self.stats.waited_ns or 0) + int((time.monotonic() - now) * 1e9)

    def _wait(self, deadline: float) -> bool:
        """Wait for a datagram; return False at the deadline, or when woken."""
        began = time.monotonic()
        readable = [each for each, _ in self._poll.poll(max(0.0, deadline - began) * 1000)]
        self.stats.waited_ns = (self.stats.waited_ns or 0) + int((time.monotonic() - began) * 1e9)
        if self._interruption in readable:
            os.eventfd_read(self._interruption)
            return False
        return bool(readable)


def _is_readable(of: socket.socket) -> bool:
    """Return whether datagrams wait; with a poll object of its own, for any thread."""
    poll = select.poll()
    poll.register(of, select.POLLIN)
    return bool(poll.poll(0))
