"""Packets of a live interface, from the kernel's ring."""

from __future__ import annotations

import errno
import math
import os
import select
import socket
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.capture.sources.af_packet.block_layout import HEADROOM_BYTES
from gscope.capture.sources.af_packet.derived_filter import compile_condition, conjunction
from gscope.capture.sources.af_packet.device import look_up, unknown_device
from gscope.capture.sources.af_packet.filter import Instruction, accept_all, compile_filter
from gscope.capture.sources.af_packet.index import index_ring_blocks
from gscope.capture.sources.af_packet.kernel_api import NETLINK_ROUTE, RTMGRP_LINK
from gscope.capture.sources.af_packet.link_type import LINKTYPE_ETHERNET
from gscope.capture.sources.af_packet.live_stats import LiveStats
from gscope.capture.sources.af_packet.packet_socket import (
    Fanout,
    attach_filter,
    bind,
    enable_hardware_time,
    fanout_group,
    join_fanout,
    open_packet_socket,
    read_statistics,
)
from gscope.capture.sources.af_packet.ring import (
    DEFAULT_RING_BYTES,
    RETIRE_MS,
    MappedRing,
    RingShape,
    load_kernels,
)
from gscope.capture.sources.base import InputState, RingUse
from gscope.errors import CaptureError, NoDeviceError, UsageError
from gscope.queries.os_errors import os_reason
from gscope.queries.plan.split.kernel_filter import TRUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.sources.af_packet.device import Device
    from gscope.capture.sources.block import Block
    from gscope.queries.plan.split.kernel_filter import Condition

DEFAULT_SNAPLEN = 262144
"""Whole packets; the default of tcpdump."""

LOOPBACK_NAME = "lo"


class AfPacketSource:
    """Packets of an interface, in place in the kernel's ring; see ``LiveSource``.

    The blocks are the kernel's own: it writes to a block again as soon as the block is released, so
    all LFTAs must have processed it. When an interface goes down or vanishes, ``state`` reports
    that, and packets continue when an interface of that name returns. That needs no privilege, so
    privileges can be dropped as soon as the source is open. Only a member of a ``fanout`` group
    cannot be attached again.

    All methods but ``interrupt`` and ``wake`` belong to one thread. Several threads share an
    interface through one source each, all with the same ``fanout``.

    Args:
        name: what the user calls the interface.
        device: the kernel's name of it; ``any`` for all interfaces.
        snaplen: longest captured length, in bytes; longer packets are truncated.
        ring_bytes: size of the ring; 2 MiB to 4 GiB.
        promiscuous: whether to capture packets for other hosts too.
        filter: filter expression (pcap-filter(7)); "" for all packets.
        fanout: the group of sources that share the interface; None for one that does not share it.
        hardware_time: whether the network card timestamps the packets; its clock must be
            synchronised.

    Raises:
        UsageError: an argument is out of range.
    """

    def __init__(
        self,
        name: str,
        device: str,
        *,
        snaplen: int = DEFAULT_SNAPLEN,
        ring_bytes: int = DEFAULT_RING_BYTES,
        promiscuous: bool = True,
        filter: str = "",  # noqa: A002  # what tcpdump and users call it
        fanout: Fanout | None = None,
        hardware_time: bool = False,
    ) -> None:
        if not 1 <= snaplen < 1 << 31:
            message = f"{name}: invalid snap length {snaplen}: expected 1 to 2147483647"
            raise UsageError(message)
        self.name = name
        self.device = device
        self.stats = LiveStats()
        self.damage: list[str] = []
        self._state = InputState.GONE
        self._shape = RingShape.of(ring_bytes)
        self._snaplen = snaplen
        self._promiscuous = promiscuous
        self._filter = filter
        self._fanout = fanout
        self._is_shared = False
        self._hardware_time = hardware_time
        self._link = 0
        self._is_cooked = False
        self._index = 0
        self._loopback = 0
        self._block: Block | None = None
        self._rest_ns = 0
        self._program: list[Instruction] = []
        self._socket: socket.socket | None = None
        self._ring: MappedRing | None = None
        self._changes: socket.socket | None = None
        self._poll = select.poll()
        self._poll_signals = select.poll()
        # Keeps the descriptor open while another thread writes to it.
        self._lock = threading.Lock()
        self._is_interrupted = False
        self._interruption = -1

    @property
    def linktype(self) -> int:
        """Link type of the packets; known once open."""
        return self._link

    @property
    def fanout_group(self) -> int:
        """Number of the fanout group that an open member belongs to."""
        assert self._socket is not None
        return fanout_group(self._socket)

    def divide(self, program: Sequence[Instruction]) -> None:
        """Let a program divide the frames of the fanout group; before ``share``."""
        assert self._fanout is not None
        if self._link == LINKTYPE_ETHERNET:
            self._fanout = replace(self._fanout, program=tuple(program))

    def share(self, group: int | None = None) -> None:
        """Become a member of the fanout group; needs no privilege.

        Args:
            group: the number of an existing group, instead of the one given or a new one.

        Raises:
            CaptureError: the device is down, or the kernel refuses.
        """
        if self._fanout is None or self._is_shared:
            return
        assert self._socket is not None
        if group is not None:
            self._fanout = replace(self._fanout, group=group)
        try:
            join_fanout(self._socket, self._fanout)
        except OSError as error:
            reason = os_reason(error)
            message = f"threads cannot share the packets of {self.device}: {reason}"
            raise CaptureError(message) from error
        self._is_shared = True

    def state(self) -> InputState:
        """See ``PacketSource``."""
        return self._state

    def ring_use(self) -> RingUse:
        """See ``PacketSource``.

        Blocks that the kernel has filled and the reader has not released are in use.
        """
        ready_blocks = 0 if self._ring is None else self._ring.ready_blocks
        return RingUse(self._shape.size_bytes, ready_blocks / self._shape.blocks)

    @property
    def failure(self) -> str:
        """See ``LiveDevice``."""
        if self._ring is None or self._state is not InputState.GONE:
            return ""
        return self.damage[-1] if self.damage else f"{self.device} vanished and has not come back"

    def open(self) -> None:
        """See ``PacketSource``; packets arrive from ``start`` on."""
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def narrow(self, condition: Condition) -> None:
        """See ``LiveDevice``; the kernel's filter decides, and only of Ethernet frames."""
        if self._link == LINKTYPE_ETHERNET and condition != TRUE:
            self._program = conjunction(self._program, compile_condition(condition, self._snaplen))

    def start(self) -> None:
        """See ``LiveDevice``; needs no privilege."""
        assert self._socket is not None
        self.share()
        attach_filter(self._socket, self._program)

    def prepare(self) -> bool:
        """See ``LiveDevice``."""
        load_kernels()
        has_dropped = self.has_dropped()
        if has_dropped:
            self.start_again()
        return has_dropped

    def has_dropped(self) -> bool:
        """Return whether the kernel has dropped packets so far."""
        self._count_loss()
        return self.stats.dropped_packets > 0

    def start_again(self) -> None:
        """Discard what an unread ring holds, uncounted, and let packets in again.

        Kernels must be loaded.
        """
        assert self._socket is not None
        attach_filter(self._socket, accept_all(0))
        ring = self._open_ring()
        while not ring.is_empty:
            if ring.take() is not None:
                ring.give_back()
            else:
                self._poll.poll(RETIRE_MS)
        self._count_loss()
        stats = self.stats
        stats.kernel_packets = stats.received_packets = stats.dropped_packets = 0
        stats.frozen_total = 0
        attach_filter(self._socket, self._program)

    def next_block(self, timeout_s: float | None = None) -> Block | None:
        """See ``LiveSource``; a ``timeout_s`` of None waits without a limit."""
        try:
            return self._next_block(timeout_s)
        except OSError as error:
            reason = os_reason(error)
            message = f"capturing on {self.device} has failed: {reason}"
            raise CaptureError(message) from error

    def _next_block(self, timeout_s: float | None) -> Block | None:
        self.release(self._block)
        ring = self._open_ring()
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            block = ring.take()
            if block is not None:
                self._block = block
                self._fill_index(block, ring.taken)
                if block.count:
                    self._count_loss()
                    return block
                self.release(block)
            elif not self._rest(deadline) and not self._wait(deadline):
                self._count_loss()
                return None

    def release(self, block: Block | None) -> None:
        """See ``LiveSource``; None is ignored."""
        if block is not None and block is self._block:
            self._block = None
            self._open_ring().give_back()

    def is_idle(self) -> bool:
        """See ``LiveSource``.

        If it is idle, every packet that the kernel had put into the ring was processed and
        released. A packet with an earlier timestamp may still be on its way through the kernel's
        queues: that is what the skew of an interface is for.
        """
        return self._block is None and self._open_ring().is_empty

    def interrupt(self) -> None:
        """Make a ``next_block`` that waits, and all later ones that would wait, return None.

        From any thread.
        """
        with self._lock:
            self._is_interrupted = True
        self.wake()

    def wake(self) -> None:
        """See ``LiveSource``."""
        with self._lock:
            if self._interruption >= 0:
                os.eventfd_write(self._interruption, 1)

    def close(self) -> None:
        """See ``PacketSource``."""
        if self._socket is not None:
            # A caller that still holds a block keeps the mapping and the socket alive.
            attach_filter(self._socket, accept_all(0))
            self._count_loss()
        self._block = None
        if self._ring is not None:
            self._ring.close()
            self._ring = None
        for each in (self._socket, self._changes):
            if each is not None:
                each.close()
        self._socket = self._changes = None
        with self._lock:
            if self._interruption >= 0:
                os.close(self._interruption)
                self._interruption = -1

    def _open(self) -> None:
        # Before the device is looked up, so that no change is missed.
        self._changes = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, NETLINK_ROUTE
        )
        self._changes.bind((0, RTMGRP_LINK))
        self._interruption = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        device = look_up(self._changes, self.device)
        if device is None:
            raise NoDeviceError(unknown_device(self.device))
        self._is_cooked = device.link_type.is_cooked
        self._socket = open_packet_socket(is_cooked=self._is_cooked, headroom_bytes=HEADROOM_BYTES)
        self._program = compile_filter(
            self._filter, device=self.device, link_type=device.link_type, snaplen=self._snaplen
        )
        attach_filter(self._socket, accept_all(0))
        if self._hardware_time:
            enable_hardware_time(self._socket, self.device)
        self._ring = MappedRing(self._socket, self._shape)
        loopback = look_up(self._socket, LOOPBACK_NAME)
        self._loopback = loopback.index if loopback is not None else 0
        for each in (self._socket, self._changes, self._interruption):
            self._poll.register(each, select.POLLIN)
        for each in (self._changes, self._interruption):
            self._poll_signals.register(each, select.POLLIN)
        try:
            self._attach(device)
        except OSError as error:
            reason = os_reason(error)
            message = f"cannot capture on {self.device}: {reason}"
            vanished = error.errno in (errno.ENODEV, errno.ENXIO)
            raise (NoDeviceError if vanished else CaptureError)(message) from error

    def _attach(self, device: Device) -> None:
        assert self._socket is not None
        bind(
            self._socket,
            self.device,
            device,
            promiscuous=self._promiscuous,
        )
        self._index = device.index
        self._link = device.link_type.number
        self._state = InputState.UP if device.is_up else InputState.DOWN

    def _fill_index(self, block: Block, blocks: int) -> None:
        block.count, skipped, lost, hardware, wire_bytes = index_ring_blocks(
            block.data.ctypes.data,
            self._shape.block_bytes,
            blocks,
            self._snaplen,
            self._link,
            self._is_cooked,
            self._loopback,
            *block.index_addresses,
        )
        most = self._open_ring().most_taken
        if block.count and most > 1:
            least_ns, greatest_ns = block.time_extent_ns
            self._rest_ns = (greatest_ns - least_ns) // blocks * most
        stats = self.stats
        stats.received_packets += block.count + skipped + lost
        stats.filtered_packets += skipped
        stats.dropped_packets += lost
        stats.hardware_time_packets += hardware
        stats.received_bytes += wire_bytes

    def _count_loss(self) -> None:
        if self._socket is None:
            return
        self.stats.drops_read_ns = time.time_ns()
        packets, dropped, freezes = read_statistics(self._socket)
        self.stats.kernel_packets += packets
        self.stats.received_packets += dropped
        self.stats.dropped_packets += dropped
        self.stats.frozen_total += freezes

    def _wait(self, deadline: float | None) -> bool:
        """Wait for a block or a change of the device.

        Return False at the deadline or when woken.
        """
        if self._is_interrupted:
            return False
        left_ms = None if deadline is None else _left_ms(deadline)
        began_ns = time.monotonic_ns()
        ready = dict(self._poll.poll(left_ms))
        self.stats.waited_ns = (self.stats.waited_ns or 0) + time.monotonic_ns() - began_ns
        if not ready:
            return False
        assert self._socket is not None
        assert self._changes is not None
        if ready.get(self._socket.fileno(), 0) & select.POLLERR:
            # Reading the error (ENETDOWN) clears it; otherwise every poll would return immediately.
            self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            self._update_state()
        if self._changes.fileno() in ready:
            self._drain_changes()
            self._update_state()
        if self._interruption in ready:
            os.eventfd_read(self._interruption)
            return False
        return True

    def _rest(self, deadline: float | None) -> bool:
        """Let a busy interface fill as many blocks as are taken at once, unless something happens.

        A reader that has slept finds cold caches, so it is woken for several blocks, not for each.
        Return whether it has rested; it then looks for blocks before it rests again.
        """
        rest_ms, self._rest_ns = self._rest_ns // 1_000_000, 0
        if not 0 < rest_ms < RETIRE_MS or self._is_interrupted:
            return False
        if deadline is not None:
            rest_ms = min(rest_ms, _left_ms(deadline))
        began_ns = time.monotonic_ns()
        self._poll_signals.poll(rest_ms)
        self.stats.waited_ns = (self.stats.waited_ns or 0) + time.monotonic_ns() - began_ns
        return True

    def _drain_changes(self) -> None:
        """Empty the socket of changes; their content is irrelevant, so lost messages do no harm."""
        assert self._changes is not None
        while True:
            try:
                self._changes.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise

    def _update_state(self) -> None:
        """Update the state of the device, and attach to one that has returned."""
        assert self._socket is not None
        was = self._state
        device = look_up(self._socket, self.device)
        if device is None:
            self._state = InputState.GONE
        elif device.index == self._index and was is not InputState.GONE:
            self._state = InputState.UP if device.is_up else InputState.DOWN
        else:
            self._state = InputState.GONE
            self._attach_again(device)
        if was is InputState.UP and self._state is not InputState.UP:
            self.stats.interruptions_total += 1

    def _attach_again(self, device: Device) -> None:
        """Attach to a device of that name if its link type is the same.

        The next change tries again.
        """
        if device.link_type.number != self._link:
            self._report_damage(f"has come back with link type {device.link_type.name}")
            return
        try:
            self._attach(device)
        except OSError as error:
            # It has vanished again, or the socket is in a fanout group, which it cannot join twice.
            self._report_damage(f"cannot be captured again: {os_reason(error)}")

    def _report_damage(self, problem: str) -> None:
        sentence = f"{self.device} {problem}"
        if sentence not in self.damage:
            self.damage.append(sentence)

    def _open_ring(self) -> MappedRing:
        if self._ring is None:
            message = f"{self.name} is not open"
            raise CaptureError(message)
        return self._ring


def _left_ms(deadline: float) -> int:
    """Return the milliseconds until a moment of the monotonic clock, rounded up; at least 0."""
    return max(0, math.ceil((deadline - time.monotonic()) * 1000))
