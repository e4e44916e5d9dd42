"""Tables of the kernel's network configuration (rtnetlink(7)), read without privileges."""

from __future__ import annotations

import os
import socket
import struct
from typing import TYPE_CHECKING, NamedTuple

from gscope.capture.sources.af_packet.kernel_api import NETLINK_ROUTE
from gscope.errors import CaptureError
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from collections.abc import Iterator

RTM_GETLINK, RTM_GETADDR = 18, 22
IFLA_ADDRESS, IFLA_IFNAME = 1, 3
IFA_ADDRESS, IFA_LOCAL = 1, 2

LINK = struct.Struct("BxHiII")
"""``struct ifinfomsg``: family, hardware type, interface, flags, mask of changed flags."""
ADDRESS = struct.Struct("4BI")
"""``struct ifaddrmsg``: family, prefix length, flags, scope, interface."""

_MESSAGE = struct.Struct("IHHII")
_ATTRIBUTE = struct.Struct("HH")
_REQUEST_DUMP = 0x301
_ERROR, _DONE = 2, 3
_RECEIVE_BYTES = 1 << 18


class Entry(NamedTuple):
    """An entry of a table: the fields of its header, and its attributes by number."""

    header: tuple[int, ...]
    attributes: dict[int, bytes]


def dump(table: int, header: struct.Struct) -> list[Entry]:
    """Return all entries of a table.

    Args:
        table: the request, such as ``RTM_GETLINK``.
        header: layout of the header of each entry, such as ``LINK``.

    Raises:
        CaptureError: the kernel refuses.
    """
    question = bytes(header.size)
    request = _MESSAGE.pack(_MESSAGE.size + header.size, table, _REQUEST_DUMP, 1, 0) + question
    found: list[Entry] = []
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_ROUTE) as kernel:
            kernel.send(request)
            while _take(kernel.recv(_RECEIVE_BYTES), header, found):
                pass
    except OSError as error:
        reason = os_reason(error)
        message = f"cannot list the kernel's network interfaces: {reason}"
        raise CaptureError(message) from error
    return found


def _take(messages: bytes, header: struct.Struct, found: list[Entry]) -> bool:
    """Append the entries of some messages; return False after the last one."""
    at = 0
    while at + _MESSAGE.size <= len(messages):
        length, kind, *_ = _MESSAGE.unpack_from(messages, at)
        body = messages[at + _MESSAGE.size : at + length]
        if kind == _ERROR:
            (number,) = struct.unpack_from("i", body)
            raise OSError(-number, os.strerror(-number))
        if kind == _DONE:
            return False
        attributes = dict(_attributes(body[_aligned(header.size) :]))
        found.append(Entry(header.unpack_from(body), attributes))
        at += max(_aligned(length), _MESSAGE.size)
    return True


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        yield kind, data[at + _ATTRIBUTE.size : at + length]
        at += max(_aligned(length), _ATTRIBUTE.size)


def _aligned(length: int) -> int:
    return (length + 3) & ~3
