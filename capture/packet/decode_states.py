"""The vocabulary of decoding: kinds of headers, and numbers on the wire.

Decoding is a walk. A *step* is five int64: the kind of the next header (one of the constants
below), its address, the end of the enclosing layer (at most the end of the captured bytes), its
type if it has one (an EtherType or length; the ``Reason`` for ``ODD``), and the link word of the
record so far.
"""

from __future__ import annotations

NOTHING = 0
"""Something without IP."""
ODD = 1
"""Bytes that cannot be decoded; the type is the reason."""
ETHERNET = 2
ETHERTYPE = 3
"""A header identified by an EtherType."""
LENGTH_OR_TYPE = 4
"""A header after an EtherType that is a length if it is at most 1500."""
LLC = 5
PPP = 6
"""A PPP frame from its protocol number on."""
PPP_HDLC = 7
"""A PPP frame that may begin with address and control, or use Cisco's framing."""
MPLS = 8
PPPOE = 9
IP = 10
"""An IP header of either version."""
IPV4 = 11
"""An IP header that must be of version 4, because the header before it says so."""
IPV6 = 12
ARP = 13

TYPE_IPV4 = 0x0800
TYPE_ARP = 0x0806
TYPE_TRANSPARENT_BRIDGING = 0x6558
TYPE_VLAN = 0x8100
TYPE_IPV6 = 0x86DD
TYPE_PPP = 0x880B
TYPE_MPLS = 0x8847
TYPE_MPLS_MULTICAST = 0x8848
TYPE_PPPOE = 0x8864
TYPE_JUMBO_LLC = 0x8870
TYPE_PROVIDER_VLAN = 0x88A8
TYPE_BACKBONE = 0x88E7
TYPE_MACSEC = 0x88E5
TYPE_VNTAG = 0x8926
TYPE_ETAG = 0x893F
TYPE_NSH = 0x894F
TYPE_OLD_VLAN = 0x9100
TYPE_ARISTA = 0xD28B

MAX_ETHERNET_LENGTH = 1500
MIN_ETHERTYPE = 0x0600
