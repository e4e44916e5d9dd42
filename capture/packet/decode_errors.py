"""Reasons why a packet could not be decoded to its transport header; counted, never raised."""

from __future__ import annotations

from enum import IntEnum


class Reason(IntEnum):
    """Why a packet was not decoded completely; the fields that could be read still have values.

    A packet with something other than IP (ARP, an unknown EtherType) has no reason.
    """

    NONE = 0
    UNKNOWN_LINKTYPE = 1
    """gscope does not decode this pcap link type."""
    LINK_TRUNCATED = 2
    """The captured bytes end inside the link layer or a shim after it (VLAN, MPLS, PPPoE …)."""
    LINK_MALFORMED = 3
    """A length or type of the link layer is invalid."""
    TOO_DEEP = 4
    """More headers are nested than ``MAX_LAYERS``."""
    IP_TRUNCATED = 5
    """The captured bytes end inside the fixed part of the IP header."""
    IP_BAD_VERSION = 6
    """The version is neither 4 nor 6 where an IP header must be."""
    IP_BAD_LENGTH = 7
    """The header length is below 20 or above the total length."""
    EXTENSION_TRUNCATED = 8
    """An IPv4 option or IPv6 extension header is not captured completely, or contradicts the total
    length."""
    TRANSPORT_TRUNCATED = 9
    """The ports of a first fragment are not captured."""
    LOWPAN_CONTEXT = 10
    """A compressed 6LoWPAN address needs a context, which is not part of the packet."""
    LOWPAN_FRAGMENT = 11
    """A fragment of a 6LoWPAN packet; gscope does not reassemble them."""
    LOWPAN_UNSUPPORTED = 12
    """6LoWPAN with HC1, a broadcast header, or a compressed header other than IPv6 and UDP."""
    FLOW_WITHOUT_TEMPLATE = 13
    """A set of flow records whose template has not been exported before; counted once a set."""
    FLOW_MALFORMED = 14
    """A datagram of flow records that is damaged, not captured completely, or in fragments, or a
    damaged block of a file of them; the records before the damage are read."""


REASON_COUNT = len(Reason)

UNSUPPORTED = frozenset(
    (
        Reason.UNKNOWN_LINKTYPE,
        Reason.TOO_DEEP,
        Reason.LOWPAN_CONTEXT,
        Reason.LOWPAN_FRAGMENT,
        Reason.LOWPAN_UNSUPPORTED,
        Reason.FLOW_WITHOUT_TEMPLATE,
    )
)
"""Reasons of packets with which nothing is wrong: gscope does not decode them, other programs may.

Packets with any other reason are malformed: damaged, or not captured completely."""
