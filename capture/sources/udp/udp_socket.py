"""A UDP socket with timestamps and a large buffer, and what the kernel says about it."""

from __future__ import annotations

import ctypes
import errno
import socket
import struct

from gscope.capture.sources.udp.address import UdpAddress
from gscope.errors import CaptureError
from gscope.queries.os_errors import os_reason

_SO_TIMESTAMPNS = 35
_SO_RCVBUFFORCE = 33
_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27
_SO_MEMINFO = 55
# From asm-generic/socket.h, which the architectures that gscope supports use.

_MEMORY = struct.Struct("9I")
"""``SK_MEMINFO_VARS`` of linux/sock_diag.h: the first is what the buffer holds, the second its
size, the last the number of datagrams that were dropped."""

_REJECT_ALL = struct.pack("HBBI", 0x06, 0, 0, 0)


def open_socket(address: UdpAddress, device: str, buffer_bytes: int) -> socket.socket:
    """Return a bound socket that lets no datagram in before ``let_in``.

    Args:
        address: where to receive.
        device: the address as the user gave it, for messages.
        buffer_bytes: size of the kernel's buffer; it is smaller if ``net.core.rmem_max`` is, unless
            this process has CAP_NET_ADMIN.

    Raises:
        CaptureError: the address is in use, is not one of this machine, or is not permitted.
    """
    try:
        opened = _made(address.family)
    except OSError as error:
        if address.host or error.errno != errno.EAFNOSUPPORT:
            raise CaptureError(_refusal(error, address, device)) from error
        # A kernel without IPv6.
        return open_socket(UdpAddress("0.0.0.0", address.port), device, buffer_bytes)
    try:
        shut_out(opened)
        opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        _set_buffer(opened, buffer_bytes)
        if address.family == socket.AF_INET6:
            is_any = address.host in ("", "::")
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not is_any)
        opened.bind(_resolved(address))
    except OSError as error:
        opened.close()
        raise CaptureError(_refusal(error, address, device)) from error
    return opened


def _made(family: socket.AddressFamily) -> socket.socket:
    return socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)


def shut_out(of: socket.socket) -> None:
    """Let no datagram in; the kernel counts those that come as dropped."""
    code = ctypes.create_string_buffer(_REJECT_ALL, len(_REJECT_ALL))
    of.setsockopt(
        socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(code))
    )


def let_in(of: socket.socket) -> None:
    """Let datagrams in."""
    of.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)


def memory_of(of: socket.socket) -> tuple[int, int, int]:
    """Return the bytes that the buffer holds, its size, and how many datagrams were dropped.

    Bytes are those of the kernel's memory, more than those of the datagrams. The number is that of
    the control message SO_RXQ_OVFL, which comes with a datagram only. It has 32 bits.
    """
    values = _MEMORY.unpack(of.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMORY.size))
    return values[0], values[1], values[8]


def _set_buffer(of: socket.socket, size_bytes: int) -> None:
    # The kernel doubles the number, for its own overhead.
    wanted = min(size_bytes // 2, (1 << 30) - 1)
    try:
        of.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, wanted)
    except PermissionError:
        of.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, wanted)


def _resolved(address: UdpAddress) -> tuple[object, ...]:
    host = address.host or "::"
    flags = socket.AI_NUMERICHOST | socket.AI_PASSIVE
    try:
        found = socket.getaddrinfo(host, address.port, address.family, socket.SOCK_DGRAM, 0, flags)
    except socket.gaierror as error:
        raise OSError(errno.EADDRNOTAVAIL, str(error)) from error
    return found[0][4]


def _refusal(error: OSError, address: UdpAddress, device: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"cannot receive on {device}: another process receives on port {address.port};"
            f" `ss -lunp sport = :{address.port}` shows which"
        )
    if error.errno in (errno.EACCES, errno.EPERM) and address.port < 1024:
        return (
            f"cannot receive on {device}: ports below 1024 require CAP_NET_BIND_SERVICE;"
            " use a higher port, or run gscope as root or with this capability"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return (
            f"cannot receive on {device}: {address.host} is not an address of this machine;"
            f" udp://:{address.port} receives on all"
        )
    return f"cannot receive on {device}: {os_reason(error)}"
