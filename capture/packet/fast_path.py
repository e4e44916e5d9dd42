"""Plain packets: complete Ethernet and IP headers without options or extension headers.

Most traffic is plain, and its fields have fixed offsets from the beginning of the packet:
``PLAIN_VARIABLES`` of ``fields.py`` has them, for kernels that need no record of such packets.
"""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import be16, ld8, ld16, ld32

_V4_BYTES, _V6_BYTES = 38, 58
"""Captured bytes up to and including the ports."""
_PORTS_BYTES = 4

# Ethernet type 0800, version 4, header length 20 and any type of service, as loaded little-endian.
_V4_MASK, _V4_PLAIN = 0x00FF_FFFF, 0x0045_0008
# Ethernet type 86DD and version 6.
_V6_MASK, _V6_PLAIN = 0x00F0_FFFF, 0x0060_DD86
# More-fragments bit and fragment offset, as loaded little-endian.
_FRAGMENT_MASK = 0xFF3F


@kernel
def is_plain_ipv4(base: int, caplen: int) -> bool:
    """Return whether the Ethernet packet at ``base`` is plain IPv4.

    Branch-free, to avoid mispredictions.
    """
    return (
        (ld32(base + 12) & _V4_MASK == _V4_PLAIN)
        & (ld16(base + 20) & _FRAGMENT_MASK == 0)
        & (be16(base + 16) >= _V4_BYTES - 14)
        & (caplen >= _V4_BYTES)
    )


@kernel
def is_plain_ipv6(base: int, caplen: int) -> bool:
    """Return whether the Ethernet packet at ``base`` is plain IPv6 with TCP, UDP or ICMPv6."""
    protocol = ld8(base + 20)
    return (
        (ld32(base + 12) & _V6_MASK == _V6_PLAIN)
        & ((protocol == 6) | (protocol == 17) | (protocol == 58))
        & (be16(base + 18) >= _PORTS_BYTES)
        & (caplen >= _V6_BYTES)
    )
