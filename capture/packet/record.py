"""The record that ``locate`` writes for each packet: its layout, and the function that writes it.

Five words of 64 bits, so that decoding an ordinary packet costs five stores:

====== ========= ==============================================================================
offset name      contents
====== ========= ==============================================================================
0      l3        address of the IP header, or of the ARP header; some readable address otherwise
8      payload   address after the IP header and its extension headers, at most ``pend``
16     pend      address one past the last captured byte of the IP packet
24     info      bits, see below
32     link      bits 0-15 and 16-31: offset of destination and source MAC in the packet;
                 32-47 and 48-63: outer and inner VLAN id; ``NOWHERE`` in any of the four for none
====== ========= ==============================================================================

info: bits 0-7 protocol, 8-11 version (4, 6, or 0 without an IP header), 12 has_ports, 13 is_arp,
14 more_fragments, 16-31 ethertype (0 for none), 32-44 fragment offset in units of 8 bytes,
48-55 reason (``Reason``).

At least 64 bytes from each of the three addresses may be loaded (``PADDING_BYTES`` of a block);
only those below ``pend`` belong to the packet.
"""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import st64

RECORD_BYTES = 40
L3, PAYLOAD, PEND, INFO, LINK = 0, 8, 16, 24, 32

VERSION_SHIFT = 8
HAS_PORTS = 1 << 12
IS_ARP = 1 << 13
MORE_FRAGMENTS = 1 << 14
ETHERTYPE_SHIFT = 16
FRAGMENT_OFFSET_SHIFT = 32
REASON_SHIFT = 48

NOWHERE = 0xFFFF
NO_LINK = -1
"""A link word without MAC addresses and VLAN tags."""
ETHERNET_LINK = -65536 << 16 | 6 << 16
"""The link word of untagged Ethernet: destination at 0, source at 6."""


@kernel
def write_record(record: int, l3: int, payload: int, pend: int, info: int, link: int) -> None:
    """Store the five words of the record at address ``record``."""
    st64(record + L3, l3)
    st64(record + PAYLOAD, payload)
    st64(record + PEND, pend)
    st64(record + INFO, info)
    st64(record + LINK, link)
