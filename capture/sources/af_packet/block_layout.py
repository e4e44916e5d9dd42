"""The layout of a block of the kernel's ring, as TPACKET_V3 and gscope's sockets lay it out.

A block (``struct tpacket_block_desc`` of linux/if_packet.h) begins with a header of 32-bit words:
version, private offset, status, packets, offset of the first packet. Each packet has a ``struct
tpacket3_hdr`` of 48 bytes, a ``struct sockaddr_ll`` of 20, some room, and its bytes; nothing of it
is aligned to words.
"""

from __future__ import annotations

BLOCK_HEADER_BYTES = 48
PACKET_HEADER_BYTES = 48
ADDRESS_BYTES = 20

HEADER_BYTES = PACKET_HEADER_BYTES + ADDRESS_BYTES
"""Smallest header of a packet: ``TPACKET3_HDRLEN``."""

TAG_BYTES = 4
COOKED_BYTES = 16
"""A header of LINKTYPE_LINUX_SLL: packet type, hardware type, address length, address (8 bytes),
protocol."""

HEADROOM_BYTES = COOKED_BYTES + TAG_BYTES
"""Room that a socket reserves (PACKET_RESERVE) before each packet for a cooked header and a tag."""
