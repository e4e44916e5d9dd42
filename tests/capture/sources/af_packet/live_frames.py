"""Ethernet frames to send."""

from __future__ import annotations

import struct

ADDRESSES = b"\xff" * 6 + b"\x02\0\0\0\0\1"
"""To all, from a made-up card."""

_IPV4 = struct.Struct(">2B3H2BH4s4s")


def numbered_frame(number: int, size: int, ethertype: bytes = b"\x88\xb5") -> bytes:
    """A frame that no host answers, with its number behind the ethertype (or the tags) given."""
    start = ADDRESSES + ethertype + struct.pack(">I", number)
    return start.ljust(size, b"%c" % (number % 251))


def udp_frame(number: int, port: int) -> bytes:
    """A datagram from ``port`` whose payload is its number."""
    udp = struct.pack(">4HI", port, 53, 12, 0, number)
    source, target = b"\n\0\0\1", b"\n\0\0\2"
    ip = _IPV4.pack(0x45, 0, 32, number & 0xFFFF, 0, 64, 17, 0, source, target)
    return ADDRESSES + b"\x08\x00" + ip + udp
