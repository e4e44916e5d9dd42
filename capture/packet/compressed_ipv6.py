"""Expansion of compressed IPv6 and UDP headers of 6LoWPAN (RFC 6282).

Only headers that need no state are expanded: traffic class, next header, hop limit, addresses that
are inline or derived from the link layer's, and UDP. Elided lengths are those of the frame on the
wire; an elided UDP checksum is 0. Behaviour follows Wireshark 4.0, against which it is tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import (
    be16,
    be32,
    bswap16,
    bswap64,
    ld8,
    ld16,
    ld64,
    st8,
    st16,
    st64,
)
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.decode_states import IPV6, ODD
from gscope.capture.packet.record import NO_LINK

if TYPE_CHECKING:
    from gscope.capture.packet.link_headers import Step

NO_ADDRESS, SHORT_ADDRESS = 0, 2
"""Addressing modes of an IEEE 802.15.4 frame."""

_TRUNCATED = int(Reason.LINK_TRUNCATED)
_MALFORMED = int(Reason.LINK_MALFORMED)
_CONTEXT = int(Reason.LOWPAN_CONTEXT)
_UNSUPPORTED = int(Reason.LOWPAN_UNSUPPORTED)

_HAS_CONTEXTS, _IS_GROUP = 0x80, 0x08
_WHOLE, _HALF, _SHORT, _OF_LINK, _UNSPECIFIED = range(5)
_NEEDS_CONTEXT, _RESERVED = -1, -2

_LINK_LOCAL = -0x0180 << 48
"""fe80::/64, the high half."""
_SHORT_IDENTIFIER = 0x0000_00FF_FE00_0000
_UNIVERSAL_BIT = 1 << 57
"""The bit of an EUI-64 that is inverted in an interface identifier."""

_UDP, _IPV6_BYTES, _UDP_BYTES = 17, 40, 8
_UDP_BITS, _NO_CHECKSUM = 0b11110, 4


@kernel
def expand_ipv6(
    at: int,
    end: int,
    wire_end: int,
    source_mode: int,
    source_at: int,
    destination_mode: int,
    destination_at: int,
    slot: int,
) -> Step:
    """Write the packet whose compressed header begins at ``at`` to ``slot``, which has room for it.

    ``source_mode`` to ``destination_at`` are the modes and positions of the link-layer addresses.
    """
    if at + 2 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    flags, modes = ld8(at), ld8(at + 1)
    source, destination = (modes >> 4) & 7, modes & 7
    is_group = modes & _IS_GROUP != 0
    source_bytes = _address_bytes(source)
    destination_bytes = _group_bytes(destination) if is_group else _address_bytes(destination)
    if destination_bytes == _RESERVED or (destination == _UNSPECIFIED and not is_group):
        return ODD, at, end, _MALFORMED, NO_LINK
    if source_bytes == _NEEDS_CONTEXT or destination_bytes == _NEEDS_CONTEXT:
        return ODD, at, end, _CONTEXT, NO_LINK
    if (source == _OF_LINK and source_mode == NO_ADDRESS) or (
        destination == _OF_LINK and not is_group and destination_mode == NO_ADDRESS
    ):
        return ODD, at, end, _MALFORMED, NO_LINK
    class_at = at + (3 if modes & _HAS_CONTEXTS else 2)
    class_form = (flags >> 3) & 3
    is_next_compressed = flags & 4 != 0
    next_at = class_at + _class_bytes(class_form)
    limit_at = next_at + (0 if is_next_compressed else 1)
    here = limit_at + (1 if flags & 3 == 0 else 0)
    if here + source_bytes + destination_bytes > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    st64(slot, bswap64((6 << 28 | _class_and_flow(class_at, class_form)) << 32))
    st8(slot + 7, _hop_limit(flags & 3, limit_at))
    _write_address(slot + 8, source, here, source_mode, source_at)
    here += source_bytes
    if is_group:
        _write_group(slot + 24, destination, here)
    else:
        _write_address(slot + 24, destination, here, destination_mode, destination_at)
    here += destination_bytes
    if not is_next_compressed:
        st8(slot + 6, ld8(next_at))
        return _with_rest(slot, _IPV6_BYTES, here, end, wire_end)
    if here + 1 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    form = ld8(here)
    if form >> 3 != _UDP_BITS:
        return ODD, at, end, _UNSUPPORTED, NO_LINK
    size = _udp_bytes(form)
    if here + size > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    st8(slot + 6, _UDP)
    _write_udp(slot + _IPV6_BYTES, form, here + 1, wire_end - here - size)
    return _with_rest(slot, _IPV6_BYTES + _UDP_BYTES, here + size, end, wire_end)


@kernel
def _with_rest(slot: int, header_bytes: int, at: int, end: int, wire_end: int) -> Step:
    """Copy the captured bytes after the headers, and write the payload length on the wire."""
    st16(slot + 4, bswap16(header_bytes - _IPV6_BYTES + wire_end - at))
    for i in range(end - at):
        st8(slot + header_bytes + i, ld8(at + i))
    return IPV6, slot, slot + header_bytes + end - at, 0, NO_LINK


@kernel
def _class_bytes(form: int) -> int:
    if form == 0:
        return 4
    if form == 1:
        return 3
    return 1 if form == 2 else 0


@kernel
def _class_and_flow(at: int, form: int) -> int:
    """Return the 28 bits after the version: traffic class (sent ECN first) and flow label."""
    if form == 3:
        return 0
    first = ld8(at)
    if form == 1:
        return (first >> 6) << 20 | (first & 15) << 16 | be16(at + 1)
    flow = be32(at) & 0xFFFFF if form == 0 else 0
    return ((first << 2 | first >> 6) & 255) << 20 | flow


@kernel
def _hop_limit(form: int, at: int) -> int:
    if form == 0:
        return ld8(at)
    if form == 1:
        return 1
    return 64 if form == 2 else 255


@kernel
def _address_bytes(form: int) -> int:
    if form == _WHOLE:
        return 16
    if form == _HALF:
        return 8
    if form == _SHORT:
        return 2
    return 0 if form <= _UNSPECIFIED else _NEEDS_CONTEXT


@kernel
def _group_bytes(form: int) -> int:
    """Return the inline bytes of a multicast address, unless its prefix is a context."""
    if form == 0:
        return 16
    if form == 1:
        return 6
    if form == 2:
        return 4
    if form == 3:
        return 1
    return _NEEDS_CONTEXT if form == 4 else _RESERVED


@kernel
def _write_address(out: int, form: int, at: int, link_mode: int, link_at: int) -> None:
    if form == _WHOLE:
        st64(out, ld64(at))
        st64(out + 8, ld64(at + 8))
    elif form == _UNSPECIFIED:
        st64(out, 0)
        st64(out + 8, 0)
    else:
        st64(out, bswap64(_LINK_LOCAL))
        if form == _HALF:
            st64(out + 8, ld64(at))
        elif form == _SHORT:
            st64(out + 8, bswap64(_SHORT_IDENTIFIER | be16(at)))
        elif link_mode == SHORT_ADDRESS:
            st64(out + 8, bswap64(_SHORT_IDENTIFIER | ld16(link_at)))
        else:
            # The link layer sends addresses last octet first.
            st64(out + 8, bswap64(ld64(link_at) ^ _UNIVERSAL_BIT))


@kernel
def _write_group(out: int, form: int, at: int) -> None:
    if form == 0:
        st64(out, ld64(at))
        st64(out + 8, ld64(at + 8))
    elif form == 3:
        st64(out, bswap64(-0x00FE << 48))
        st64(out + 8, bswap64(ld8(at)))
    else:
        # One octet of flags and scope after ff, the others at the end.
        st64(out, bswap64((-0x0100 | ld8(at)) << 48))
        low = ld8(at + 1) << 32 | be32(at + 2) if form == 1 else ld8(at + 1) << 16 | be16(at + 2)
        st64(out + 8, bswap64(low))


@kernel
def _udp_bytes(form: int) -> int:
    """Return the octets of a compressed UDP header, including its first, which gives the form."""
    ports = form & 3
    size = 5 if ports == 0 else 2 if ports == 3 else 4
    return size if form & _NO_CHECKSUM else size + 2


@kernel
def _write_udp(out: int, form: int, at: int, payload_bytes: int) -> None:
    ports = form & 3
    if ports == 0:
        source, destination, at = be16(at), be16(at + 2), at + 4
    elif ports == 1:
        source, destination, at = be16(at), 0xF000 | ld8(at + 2), at + 3
    elif ports == 2:
        source, destination, at = 0xF000 | ld8(at), be16(at + 1), at + 3
    else:
        source, destination, at = 0xF0B0 | ld8(at) >> 4, 0xF0B0 | ld8(at) & 15, at + 1
    checksum = 0 if form & _NO_CHECKSUM else be16(at)
    length = _UDP_BYTES + payload_bytes
    st64(out, bswap64(source << 48 | destination << 32 | length << 16 | checksum))
