"""The packet socket of a live source: opened with all its options, and bound to a device last."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.capture.sources.af_packet.device import Device, request
from gscope.capture.sources.af_packet.kernel_api import (
    ETH_P_ALL,
    FILTER_INSTRUCTION,
    FILTER_PROGRAM,
    HARDWARE_TIME,
    HWTSTAMP_FILTER_ALL,
    MEMBERSHIP,
    NAME_BYTES,
    PACKET_ADD_MEMBERSHIP,
    PACKET_FANOUT,
    PACKET_FANOUT_DATA,
    PACKET_IGNORE_OUTGOING,
    PACKET_MR_PROMISC,
    PACKET_RESERVE,
    PACKET_STATISTICS,
    PACKET_TIMESTAMP,
    PACKET_VERSION,
    SIOCGHWTSTAMP,
    SIOCSHWTSTAMP,
    SO_ATTACH_FILTER,
    SOCKET_ADDRESS,
    SOF_TIMESTAMPING_RAW_HARDWARE,
    SOF_TIMESTAMPING_SOFTWARE,
    SOL_PACKET,
    STATISTICS,
    TPACKET_V3,
)
from gscope.errors import CaptureError
from gscope.queries.os_errors import os_reason
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.sources.af_packet.filter import Instruction

FANOUT_HASH = 0
"""By a hash of addresses and ports that is the same for both directions. Later fragments have no
ports and may go to another socket than their first: reassembling them in the kernel would change
what is counted."""
_FANOUT_BY_PROGRAM = 6
_FANOUT_UNIQUE = 0x2000


@dataclass(frozen=True, slots=True)
class Fanout:
    """Several sockets of one device that share its packets.

    Attributes:
        group: number of the group, 0 to 65535; None to found a group with an unused number.
        program: what returns the number of a packet, and so of its socket (``fanout_program.py``);
            () to let the kernel's hash choose, so that all packets of a flow go to one socket.
    """

    group: int | None = None
    program: tuple[Instruction, ...] = ()


def open_packet_socket(*, is_cooked: bool, headroom_bytes: int) -> socket.socket:
    """Open a packet socket without a device: no packet arrives before it is bound.

    Args:
        is_cooked: whether the kernel removes link headers.
        headroom_bytes: free bytes before each packet in the ring.

    Raises:
        CaptureError: not permitted; the message includes the remedy.
    """
    kind = socket.SOCK_DGRAM if is_cooked else socket.SOCK_RAW
    try:
        opened = socket.socket(socket.AF_PACKET, kind, 0)
    except OSError as error:
        raise CaptureError(refusal(error)) from error
    opened.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V3)
    opened.setsockopt(SOL_PACKET, PACKET_RESERVE, headroom_bytes)
    return opened


def refusal(error: OSError) -> str:
    """Return why a packet socket could not be opened, with the command that grants the right."""
    if error.errno in (errno.EPERM, errno.EACCES):
        return f"capturing requires CAP_NET_RAW: {_remedy('net_raw')}"
    return f"packet sockets are unavailable: {os_reason(error)}"


def _remedy(capabilities: str) -> str:
    """Return the commands that grant ``capabilities``, in the syntax of setpriv, to one run.

    Capabilities of the interpreter's file would be those of every Python program of every user.
    """
    return (
        'run `sudo "$(command -v gscope)" run …`, or grant only that to a run of your own: '
        '`sudo setpriv --reuid "$USER" --regid "$(id -g)" --init-groups '
        f'--inh-caps +{capabilities} --ambient-caps +{capabilities} "$(command -v gscope)" run …`'
    )


def attach_filter(to: socket.socket, program: Sequence[Instruction]) -> None:
    """Let in only packets that the classic BPF program accepts, truncated to the length it returns.

    Raises:
        CaptureError: the kernel refuses the program.
    """
    try:
        _set_program(to, socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
    except OSError as error:
        reason = os_reason(error)
        message = f"the kernel rejected the filter of {len(program)} instructions: {reason}"
        raise CaptureError(message) from error


def _set_program(
    to: socket.socket, level: int, option: int, program: Sequence[Instruction]
) -> None:
    code = b"".join(FILTER_INSTRUCTION.pack(*instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    described = FILTER_PROGRAM.pack(len(program), ctypes.addressof(buffer))
    to.setsockopt(level, option, described)


def enable_hardware_time(of: socket.socket, name: str) -> None:
    """Make the network card timestamp all packets that it receives, unless it does so already.

    Raises:
        CaptureError: the card has no such clock, or this process may not enable it; one sentence.
    """
    config = ctypes.create_string_buffer(HARDWARE_TIME.size)
    hardware_request = bytearray(request(name))
    struct.pack_into("P", hardware_request, NAME_BYTES, ctypes.addressof(config))
    try:
        with suppress(OSError):
            # Older drivers do not report it.
            fcntl.ioctl(of, SIOCGHWTSTAMP, bytes(hardware_request))
        if HARDWARE_TIME.unpack(config.raw[: HARDWARE_TIME.size])[2] != HWTSTAMP_FILTER_ALL:
            HARDWARE_TIME.pack_into(config, 0, 0, 0, HWTSTAMP_FILTER_ALL)
            fcntl.ioctl(of, SIOCSHWTSTAMP, bytes(hardware_request))
    except OSError as error:
        raise CaptureError(_no_hardware_time(name, error)) from error
    wanted = SOF_TIMESTAMPING_RAW_HARDWARE | SOF_TIMESTAMPING_SOFTWARE
    of.setsockopt(SOL_PACKET, PACKET_TIMESTAMP, wanted)


def _no_hardware_time(name: str, error: OSError) -> str:
    if error.errno == errno.EPERM:
        remedy = _remedy("net_raw,+net_admin")
        return f"enabling hardware timestamps on {name} requires CAP_NET_ADMIN: {remedy}"
    return f"{name} cannot timestamp all packets in hardware; omit `timestamps: hardware`"


def bind(to_bind: socket.socket, name: str, device: Device, *, promiscuous: bool) -> None:
    """Let the packets of a device in, of both directions as in tcpdump.

    A bound socket is bound again.

    Needs no privilege.

    Raises:
        OSError: the device has just vanished, or the kernel refuses.
    """
    if device.is_loopback:
        # What leaves arrives again. Kernels before 4.20 lack the option; the index kernel skips the
        # copies there.
        _set_if_known(to_bind, PACKET_IGNORE_OUTGOING, struct.pack("i", 1))
    if device.index == 0:
        _bind_to_all(to_bind)
    else:
        to_bind.bind((name, ETH_P_ALL))
    if promiscuous and device.index != 0:
        membership = MEMBERSHIP.pack(device.index, PACKET_MR_PROMISC, 0, b"")
        to_bind.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, membership)


def join_fanout(of: socket.socket, fanout: Fanout) -> None:
    """Make a bound socket a member of a fanout group.

    Needs no privilege.

    Raises:
        OSError: the device is down or has vanished, or the kernel refuses.
    """
    mode = _FANOUT_BY_PROGRAM if fanout.program else FANOUT_HASH
    mode |= _FANOUT_UNIQUE if fanout.group is None else 0
    of.setsockopt(SOL_PACKET, PACKET_FANOUT, struct.pack("I", (fanout.group or 0) | mode << 16))
    if fanout.program:
        # Each member brings the same program.
        _set_program(of, SOL_PACKET, PACKET_FANOUT_DATA, fanout.program)


def fanout_group(of: socket.socket) -> int:
    """Return the number of the fanout group of a socket."""
    return of.getsockopt(SOL_PACKET, PACKET_FANOUT) & 0xFFFF


def read_statistics(of: socket.socket) -> tuple[int, int, int]:
    """Return packets that passed the filter, drops and freezes since the last call."""
    packets, dropped, freezes = STATISTICS.unpack(
        of.getsockopt(SOL_PACKET, PACKET_STATISTICS, STATISTICS.size)
    )
    return packets, dropped, freezes


def _bind_to_all(to_bind: socket.socket) -> None:
    """Bind to all devices, for which Python's ``bind`` has no address."""
    libc = ctypes.CDLL(None, use_errno=True)
    address = SOCKET_ADDRESS.pack(socket.AF_PACKET, socket.htons(ETH_P_ALL), 0, 0, 0, 0, b"")
    if libc.bind(to_bind.fileno(), address, len(address)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _set_if_known(of: socket.socket, option: int, value: bytes) -> None:
    try:
        of.setsockopt(SOL_PACKET, option, value)
    except OSError as error:
        if error.errno != errno.ENOPROTOOPT:
            raise
