"""Kernels for field snippets that need more than an expression: payloads and addresses."""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import be16, ld8, lshr, select

TCP_MIN_HEADER_BYTES = 20
UDP_HEADER_BYTES = 8
ICMP_HEADER_BYTES = 8


@kernel
def is_icmp(version: int, protocol: int) -> bool:
    """Return whether the transport is ICMP over IPv4 or ICMPv6 over IPv6."""
    return (version == 4 and protocol == 1) or (version == 6 and protocol == 58)


@kernel
def ipv6_low(high: int, low: int) -> int:
    """Return the low half of an IPv6 address's value; ``::ffff:a.b.c.d`` differs from IPv4."""
    return select((high == 0) & (lshr(low, 32) == 0xFFFF), low ^ (1 << 32), low)


@kernel
def carries_ports(protocol: int) -> int:
    """Return 1 for protocols that begin with two ports (TCP, UDP, SCTP), else 0."""
    return select((protocol == 6) | (protocol == 17) | (protocol == 132), 1, 0)


@kernel
def transport_length(version: int, protocol: int, l4: int, pend: int) -> int:
    """Return the length of a TCP (with options), UDP or ICMP header in bytes.

    0 if none or unknown.
    """
    if protocol == 6:
        if l4 + 13 > pend:
            return 0
        length = (ld8(l4 + 12) >> 4) << 2
        return select(length >= TCP_MIN_HEADER_BYTES, length, 0)
    if protocol == 17:
        return select(l4 + UDP_HEADER_BYTES <= pend, UDP_HEADER_BYTES, 0)
    if is_icmp(version, protocol):
        return select(l4 + ICMP_HEADER_BYTES <= pend, ICMP_HEADER_BYTES, 0)
    return 0


@kernel
def ip_end(version: int, l3: int, wire_end: int) -> int:
    """Return where the IP packet ended on the wire.

    A length of 0 (segmentation offload, jumbogram) means ``wire_end``.
    """
    if version == 4:
        length = be16(l3 + 2)
        return select(length == 0, wire_end, l3 + length)
    length = be16(l3 + 4)
    return select(length == 0, wire_end, l3 + 40 + length)


@kernel
def data_begin(
    version: int, protocol: int, fragment_offset: int, payload: int, header: int, pend: int
) -> int:
    """Return the address of ``data``: after a TCP, UDP or ICMP header, else after IP.

    Returns -1 if such a header is not captured.
    """
    has_header = protocol == 6 or protocol == 17 or is_icmp(version, protocol)
    if has_header and fragment_offset == 0:
        return select(header == 0, -1, min(payload + header, pend))
    return payload


@kernel
def udp_data_length(l4: int, pend: int) -> int:
    """Return the captured bytes of a UDP payload with a captured header.

    An invalid length is ignored.
    """
    length = be16(l4 + 4)
    return select(length < UDP_HEADER_BYTES, pend, min(pend, l4 + length)) - l4 - UDP_HEADER_BYTES


@kernel
def has_echo_header(version: int, icmp_type: int) -> bool:
    """Return whether an ICMP message of this type has an identifier and a sequence number."""
    if version == 6:
        return icmp_type == 128 or icmp_type == 129
    return icmp_type == 0 or icmp_type == 8 or (13 <= icmp_type <= 18)
