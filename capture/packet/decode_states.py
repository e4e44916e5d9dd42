"""The vocabulary of decoding: what stands at an address, and what the numbers on the wire mean.

Decoding is a walk. A *step* is five int64: what stands next (one of the constants below), its address, the end
of what encloses it (at most the end of the captured bytes), its type where it is told by one (an Ethernet
type or length; the ``Reason`` for ``ODD``), and the link word of the record so far.
"""

from __future__ import annotations

NOTHING = 0
"""Something that holds no IP."""
ODD = 1
"""Cannot be read; the type says why."""
ETHERNET = 2
ETHERTYPE = 3
"""What an Ethernet type names."""
LENGTH_OR_TYPE = 4
"""What follows an Ethernet type that up to 1500 is a length."""
LLC = 5
PPP = 6
"""A PPP frame from its protocol number on."""
PPP_HDLC = 7
"""A PPP frame, perhaps with address and control in front, perhaps Cisco's."""
MPLS = 8
PPPOE = 9
IP = 10
"""An IP header of either version."""
IPV4 = 11
"""An IP header that must be of version 4: another one is damage, as what announced it was definite."""
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
