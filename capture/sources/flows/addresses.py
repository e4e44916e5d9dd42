"""Addresses as they are on the wire, stored as the values of fields."""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel_part
from gscope.capture.kernels.language.intrinsics import be32, be64, st64
from gscope.capture.packet.payload import ipv6_low

MAPPED = 0xFFFF << 32
"""The low half of an IPv4 address, without the address."""


@kernel_part
def put_ipv4(at: int, target: int) -> None:
    """Store the IPv4 address at ``at``."""
    st64(target, 0)
    st64(target + 8, MAPPED | be32(at))


@kernel_part
def put_ipv6(at: int, target: int) -> None:
    """Store the IPv6 address at ``at``."""
    high = be64(at)
    st64(target, high)
    st64(target + 8, ipv6_low(high, be64(at + 8)))
