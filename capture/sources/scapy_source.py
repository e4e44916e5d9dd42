"""Packets of a live interface captured by scapy: slow, but available on many systems.

Used where the kernel's ring is unavailable, on every system that scapy supports. Each packet is a
call of Python, which limits the rate to some ten thousand packets a second; the system drops what
exceeds its buffer. The number of dropped packets is known only on Linux.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gscope.capture.sources.af_packet.device import unknown_device
from gscope.capture.sources.base import InputState, RingUse, SourceStats
from gscope.capture.sources.block import Block
from gscope.errors import CaptureError, NoDeviceError
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.plan.split.kernel_filter import Condition

BLOCK_PACKETS = 1024
BLOCK_BYTES = 1 << 20
LARGEST_PACKET = 1 << 16
DEFAULT_BUFFER_BYTES = 8 << 20

_DISCARD_S = 0.1
"""Longest time that ``start`` discards packets on a busy interface."""

_LINKTYPES = {12: 101, 14: 101}
"""Link types whose number in scapy (a DLT) differs from the one in files."""

_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_STATISTICS = struct.Struct("2I")

Listener = Any
"""A scapy ``SuperSocket`` that receives."""


class ScapySource:
    """Packets of an interface through scapy's listening socket; see ``LiveSource``.

    Args:
        name: what the user calls the interface.
        device: the system's name of it.
        snaplen: longest captured length, in bytes; longer packets are truncated.
        buffer_bytes: size of the system's packet buffer, which the system may reduce.
        promiscuous: whether to capture packets for other hosts too.
        filter: filter expression (pcap-filter(7)); "" for all packets.
        listen: function that opens the socket; by default scapy's for this system.
        wall_ns: clock for packets without a timestamp, in nanoseconds since 1970.
    """

    def __init__(
        self,
        name: str,
        device: str,
        *,
        snaplen: int,
        buffer_bytes: int = DEFAULT_BUFFER_BYTES,
        promiscuous: bool = True,
        filter: str = "",  # noqa: A002  # what tcpdump and users call it
        listen: Callable[..., Listener] | None = None,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.name = name
        self.device = device
        self.stats = SourceStats()
        self.damage: list[str] = []
        self.failure = ""
        self._buffer_bytes = buffer_bytes
        self._snaplen = snaplen
        self._promiscuous = promiscuous
        self._filter = filter
        self._listen = listen or _scapy_listener
        self._wall_ns = wall_ns
        self._start_ns = 0
        self._linktype = 0
        self._listener: Listener = None
        self._held: Block | None = None
        self._block = Block.allocate(BLOCK_BYTES, BLOCK_PACKETS)
        self._woken: socket.socket | None = None
        self._wakes: socket.socket | None = None

    def open(self) -> None:
        """See ``PacketSource``.

        Raises:
            CaptureError: not permitted, no such interface, or an invalid filter; one sentence.
        """
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        self._woken, self._wakes = socket.socketpair()
        try:
            self._listener = self._listen(
                iface=self.device,
                promisc=self._promiscuous,
                filter=self._filter or None,
                buffer_bytes=self._buffer_bytes,
            )
            self._linktype = _linktype(self._listener.LL)
        except CaptureError:
            raise
        except Exception as error:
            # scapy has no error class that it uses on all systems.
            message = f"scapy cannot capture on {self.device}: {error}"
            raise CaptureError(message) from error

    def narrow(self, condition: Condition) -> None:
        """Do nothing: rejecting packets here saves nothing."""

    def start(self) -> None:
        """See ``LiveDevice``.

        Packets that arrived before are read and discarded: the kernel may stamp the first ones only
        when they are read.
        """
        until = time.monotonic() + _DISCARD_S
        while self._has_more() and time.monotonic() < until:
            self._receive()
        self._start_ns = self._wall_ns()
        self._kernel_drops()

    def prepare(self) -> bool:
        """See ``LiveDevice``."""
        has_dropped = self._kernel_drops() > 0
        if has_dropped:
            self.start()
        return has_dropped

    def next_block(self, timeout_s: float) -> Block | None:
        """See ``LiveSource``: what is there now, up to a full block."""
        self._held = None
        listener, woken = self._sockets()
        timeout_s = 0 if self._has_buffered() else timeout_s
        ready, _, _ = select.select([listener, woken], [], [], timeout_s)
        if woken in ready:
            woken.recv(1 << 16)
        block = self._block
        block.count = used = 0
        while (
            block.count < BLOCK_PACKETS
            and used + LARGEST_PACKET <= BLOCK_BYTES
            and self._has_more()
        ):
            used = self._take(block, used)
        self.stats.received_packets += block.count
        self.stats.drops_read_ns = self._wall_ns()
        dropped = self._kernel_drops()
        self.stats.dropped_packets += dropped
        self.stats.received_packets += dropped
        if not block.count:
            return None
        self.stats.received_bytes += block.wire_bytes
        self._held = block
        return block

    def release(self, block: Block) -> None:
        """See ``LiveSource``."""
        if block is self._held:
            self._held = None

    def is_idle(self) -> bool:
        """See ``LiveSource``."""
        return self._held is None and not self._has_more()

    def wake(self) -> None:
        """See ``LiveSource``."""
        wakes = self._wakes
        if wakes is not None:
            # Closed meanwhile by the reader's thread: there is no wait to end.
            with suppress(OSError):
                wakes.send(b"\0")

    def state(self) -> InputState:
        """See ``PacketSource``.

        Scapy does not report what becomes of a device, so it counts as up.
        """
        return InputState.UP

    def ring_use(self) -> RingUse:
        """See ``PacketSource``; how full the system's buffer is cannot be asked."""
        return RingUse(self._buffer_bytes, 0.0)

    def close(self) -> None:
        """See ``PacketSource``."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self._held = None
        for each in (self._woken, self._wakes):
            if each is not None:
                each.close()
        self._woken = self._wakes = None

    def _sockets(self) -> tuple[Listener, socket.socket]:
        if self._listener is None or self._woken is None:
            message = f"{self.name} is not open"
            raise CaptureError(message)
        return self._listener, self._woken

    def _has_buffered(self) -> bool:
        """Return whether scapy holds packets that it has read ahead from the system (BSD)."""
        return bool(getattr(self._listener, "buffered_frames", lambda: 0)())

    def _has_more(self) -> bool:
        if self._has_buffered():
            return True
        listener, _ = self._sockets()
        return bool(select.select([listener], [], [], 0)[0])

    def _take(self, block: Block, used: int) -> int:
        """Append the next packet to the block behind ``used`` bytes; return the bytes used then."""
        data, seconds = self._receive()
        if data is None:
            return used
        time_ns = self._wall_ns() if seconds is None else int(seconds * 1_000_000_000)
        if time_ns < self._start_ns:
            return used
        kept = data[: self._snaplen]
        at = block.count
        block.data[used : used + len(kept)] = memoryview(kept)
        block.offset[at], block.caplen[at], block.wirelen[at] = used, len(kept), len(data)
        block.time_ns[at], block.linktype[at] = time_ns, self._linktype
        block.count += 1
        return used + len(kept)

    def _receive(self) -> tuple[bytes | None, float | None]:
        """Return the next packet and its time in seconds; scapy may omit either."""
        try:
            _, data, seconds = self._listener.recv_raw(LARGEST_PACKET - 1)
        except OSError as error:
            message = f"capturing on {self.device} has failed: {os_reason(error)}"
            raise CaptureError(message) from error
        return data, seconds

    def _kernel_drops(self) -> int:
        """Return the packets that the system dropped since the last call.

        0 where it does not report them.
        """
        listening = getattr(self._listener, "ins", None)
        if isinstance(listening, socket.socket) and listening.family == getattr(
            socket, "AF_PACKET", None
        ):
            answer = listening.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, _STATISTICS.size)
            return int(_STATISTICS.unpack(answer)[1])
        return 0


def _scapy_listener(
    *,
    iface: str,
    promisc: bool,
    filter: str | None,  # noqa: A002  # its name in scapy
    buffer_bytes: int,
) -> Listener:
    import scapy.arch
    import scapy.layers.inet6
    import scapy.layers.l2  # noqa: F401  # what knows sockets and link types
    from scapy.config import conf

    if iface not in {name for _, name in socket.if_nameindex()}:
        raise NoDeviceError(unknown_device(iface))
    # scapy lists interfaces only once.
    conf.ifaces.reload()
    conf.bufsize = buffer_bytes
    return conf.L2listen(iface=iface, promisc=promisc, filter=filter)


def _linktype(layer: type) -> int:
    """Return the pcap link type of packets whose first layer is ``layer``."""
    from scapy.config import conf

    number = conf.l2types.layer2num.get(layer)
    if number is None:
        message = f"packets begin with {layer.__name__}, which has no link type"
        raise CaptureError(message)
    return _LINKTYPES.get(int(number), int(number))
