"""Memory for the datagrams of one call of ``recvmmsg``, and the kernel that makes packets of them.

A datagram is received into a slot of its own, behind room for the headers of IP and UDP. These are
written as they were on the wire as far as they matter: with the sender, but without checksums. So
whatever reads packets of captures reads datagrams, too.
"""

from __future__ import annotations

import ctypes
import errno
import os

import numpy as np
from numpy.typing import NDArray  # noqa: TC002  # kernels are compiled by their annotations

from gscope.capture.kernels.jit import kernel, kernel_part
from gscope.capture.kernels.language.intrinsics import (
    address_of,
    be16,
    be32,
    be64,
    ld16,
    ld32,
    ld64,
    st8,
    st32,
    st64,
)
from gscope.capture.sources.block import Block, IndexArrays, PacketSums

SLOTS = 256
"""Datagrams of one call."""

_HEADROOM_BYTES = 64
_DATAGRAM_BYTES = 65536
_SLOT_BYTES = _HEADROOM_BYTES + _DATAGRAM_BYTES
_NAME_BYTES = 32
_CONTROL_BYTES = 64

_NAME, _NAME_LENGTH, _PARTS, _PART_COUNT, _CONTROL, _CONTROL_LENGTH, _FLAGS, _LENGTH = range(8)
"""Words of ``struct mmsghdr`` on machines of 64 bits; some are the lower half of their word."""

_MSG_DONTWAIT = 0x40
_SOL_SOCKET, _SCM_TIMESTAMPNS, _STAMP_BYTES = 1, 35, 32
_AF_INET = 2
_MAPPED_PREFIX = 0xFFFF
_LINKTYPE_RAW = 101
_UDP, _UDP_HEADER_BYTES, _IPV4_HEADER_BYTES, _IPV6_HEADER_BYTES = 17, 8, 20, 40
COLLECTOR_PORT = 2055
"""Port that all datagrams are given. Who sends to a collector means an export, whatever its
port."""


class DatagramBuffer:
    """Receives datagrams; for use by one thread."""

    def __init__(self) -> None:
        self.block = Block.allocate(SLOTS * _SLOT_BYTES, SLOTS)
        self._names = np.zeros((SLOTS, _NAME_BYTES), np.uint8)
        self._controls = np.zeros((SLOTS, _CONTROL_BYTES), np.uint8)
        self._parts = np.zeros((SLOTS, 2), np.int64)
        self._messages = np.zeros((SLOTS, 8), np.int64)
        numbers = np.arange(SLOTS)
        self._parts[:, 0] = self.block.data.ctypes.data + numbers * _SLOT_BYTES + _HEADROOM_BYTES
        self._parts[:, 1] = _DATAGRAM_BYTES
        self._messages[:, _NAME] = self._names.ctypes.data + numbers * _NAME_BYTES
        self._messages[:, _NAME_LENGTH] = _NAME_BYTES
        self._messages[:, _PARTS] = self._parts.ctypes.data + numbers * 16
        self._messages[:, _PART_COUNT] = 1
        self._messages[:, _CONTROL] = self._controls.ctypes.data + numbers * _CONTROL_BYTES
        self._messages[:, _CONTROL_LENGTH] = _CONTROL_BYTES
        self._receive = ctypes.CDLL(None, use_errno=True).recvmmsg
        self._vector = ctypes.c_void_p(self._messages.ctypes.data)

    def receive(self, descriptor: int) -> int:
        """Receive datagrams that have come; return how many, 0 if there is none.

        Raises:
            OSError: the kernel refuses.
        """
        found = int(self._receive(descriptor, self._vector, SLOTS, _MSG_DONTWAIT, None))
        if found >= 0:
            return found
        number = ctypes.get_errno()
        if number in (errno.EAGAIN, errno.EINTR):
            return 0
        raise OSError(number, os.strerror(number))

    def index(self, count: int, now_ns: int) -> Block:
        """Return the first ``count`` datagrams as packets.

        Args:
            count: how many there are.
            now_ns: time of datagrams that the kernel has not stamped.
        """
        sums = index_datagrams(
            self.block.data,
            self._messages,
            self._names,
            self._controls,
            count,
            now_ns,
            self.block.index_arrays,
        )
        self.block.fill_in(count, PacketSums(*sums))
        return self.block


@kernel
def index_datagrams(
    data: NDArray[np.uint8],
    messages: NDArray[np.int64],
    names: NDArray[np.uint8],
    controls: NDArray[np.uint8],
    count: int,
    now_ns: int,
    packets: IndexArrays,
) -> tuple[int, int, int]:
    """Write the headers of datagrams and index them; make the messages ready for the next call.

    Returns:
        The bytes of all packets, and the least and the greatest of their times.
    """
    wire_bytes = 0
    least_ns, greatest_ns = now_ns, now_ns
    for i in range(count):
        at = i * _SLOT_BYTES + _HEADROOM_BYTES
        payload = address_of(data) + at
        size = messages[i, _LENGTH] & 0xFFFFFFFF
        header = _write_header(payload, address_of(names) + i * _NAME_BYTES, size)
        control = address_of(controls) + i * _CONTROL_BYTES
        time_ns = now_ns
        if (
            messages[i, _CONTROL_LENGTH] >= _STAMP_BYTES
            and ld32(control + 8) == _SOL_SOCKET
            and ld32(control + 12) == _SCM_TIMESTAMPNS
        ):
            time_ns = ld64(control + 16) * 1_000_000_000 + ld64(control + 24)
        packets[0][i] = at - header
        packets[1][i] = packets[2][i] = header + size
        packets[3][i] = time_ns
        packets[4][i] = _LINKTYPE_RAW
        wire_bytes += header + size
        least_ns = time_ns if i == 0 else min(least_ns, time_ns)
        greatest_ns = time_ns if i == 0 else max(greatest_ns, time_ns)
        messages[i, _NAME_LENGTH] = _NAME_BYTES
        messages[i, _CONTROL_LENGTH] = _CONTROL_BYTES
        messages[i, _FLAGS] = 0
    return wire_bytes, least_ns, greatest_ns


@kernel_part
def _write_header(payload: int, name: int, size: int) -> int:
    """Write the headers before ``payload``, with the sender in ``name``; return their length."""
    udp = payload - _UDP_HEADER_BYTES
    length = size + _UDP_HEADER_BYTES
    _store16(udp, be16(name + 2))
    _store16(udp + 2, COLLECTOR_PORT)
    _store16(udp + 4, length)
    _store16(udp + 6, 0)
    is_ipv4 = ld16(name) == _AF_INET
    is_mapped = be64(name + 8) == 0 and be32(name + 16) == _MAPPED_PREFIX
    if is_ipv4 or is_mapped:
        ip = udp - _IPV4_HEADER_BYTES
        sender = name + 4 if is_ipv4 else name + 20
        _store16(ip, 0x4500)
        _store16(ip + 2, length + _IPV4_HEADER_BYTES)
        st32(ip + 4, 0)
        _store16(ip + 8, 64 << 8 | _UDP)
        _store16(ip + 10, 0)
        st32(ip + 12, ld32(sender))
        st32(ip + 16, 0)
        return _IPV4_HEADER_BYTES + _UDP_HEADER_BYTES
    ip = udp - _IPV6_HEADER_BYTES
    st32(ip, 0x60)
    _store16(ip + 4, length)
    _store16(ip + 6, _UDP << 8 | 64)
    st64(ip + 8, ld64(name + 8))
    st64(ip + 16, ld64(name + 16))
    st64(ip + 24, 0)
    st64(ip + 32, 0)
    return _IPV6_HEADER_BYTES + _UDP_HEADER_BYTES


@kernel_part
def _store16(at: int, value: int) -> None:
    """Store 16 bits, most significant byte first."""
    st8(at, value >> 8)
    st8(at + 1, value)
