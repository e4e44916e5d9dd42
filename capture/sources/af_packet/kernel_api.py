"""Numbers and layouts of the kernel's packet sockets that Python's ``socket`` module lacks.

From linux/if_packet.h, linux/if_ether.h, linux/net_tstamp.h, linux/sockios.h and
asm-generic/socket.h.
"""

from __future__ import annotations

import struct

SOL_PACKET = 263

PACKET_ADD_MEMBERSHIP = 1
PACKET_RX_RING = 5
PACKET_STATISTICS = 6
PACKET_VERSION = 10
PACKET_RESERVE = 12
PACKET_TIMESTAMP = 17
PACKET_FANOUT = 18
PACKET_FANOUT_DATA = 22
PACKET_IGNORE_OUTGOING = 23

TPACKET_V3 = 2
ETH_P_ALL = 3

SOCKET_ADDRESS = struct.Struct("HHiHBB8s")
"""``struct sockaddr_ll``: family, protocol, interface, hardware type, packet type, address length,
address."""

PACKET_MR_PROMISC = 1
MEMBERSHIP = struct.Struct("iHH8s")
"""``struct packet_mreq``: interface, type, address length, address."""

RING_REQUEST = struct.Struct("7I")
"""``struct tpacket_req3``: block size, blocks, frame size, frames, retire time in ms, private size,
features."""

STATISTICS = struct.Struct("3I")
"""``struct tpacket_stats_v3``: packets (dropped ones too), dropped, freezes; reading resets
them."""

SO_ATTACH_FILTER = 26
FILTER_PROGRAM = struct.Struct("HP")
"""``struct sock_fprog``: instructions, their address (native alignment)."""
FILTER_INSTRUCTION = struct.Struct("HBBI")
"""``struct sock_filter``: code, jump if true, jump if false, operand."""

SOF_TIMESTAMPING_SOFTWARE = 1 << 4
SOF_TIMESTAMPING_RAW_HARDWARE = 1 << 6
SIOCSHWTSTAMP = 0x89B0
SIOCGHWTSTAMP = 0x89B1
HARDWARE_TIME = struct.Struct("3i")
"""``struct hwtstamp_config``: flags, which sent packets get a timestamp, which received ones."""
HWTSTAMP_FILTER_ALL = 1

SIOCGIFFLAGS = 0x8913
SIOCGIFHWADDR = 0x8927
SIOCGIFINDEX = 0x8933
IFREQ_BYTES = 40
NAME_BYTES = 16
"""Bytes of an interface's name, including the terminating zero."""

IFF_UP = 0x1
IFF_LOOPBACK = 0x8
IFF_RUNNING = 0x40

NETLINK_ROUTE = 0
RTMGRP_LINK = 1
