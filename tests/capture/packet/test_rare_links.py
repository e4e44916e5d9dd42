"""Link types and layers that few captures have.

What tshark 4.0 finds in the same bytes, kernel and dissector find. ``tshark -r case.pcap -T fields
-e frame.protocols -e ip.src -e ipv6.src -e udp.srcport`` gave what is expected here, except where a
comment says why gscope differs.
"""

from __future__ import annotations

import struct

import pytest
from tests.capture.packet.kernel_reader import RawPacket, read_packets

from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.dissector.dissect import dissect

UDP = struct.pack("!HHHH", 1000, 2000, 8, 0)
V4 = struct.pack("!BBHHHBBHII", 0x45, 0, 28, 7, 0, 64, 17, 0, 0x0A000001, 0x0A000002) + UDP
V6 = struct.pack("!IHBB", 6 << 28, 8, 17, 64) + (1).to_bytes(16) + (2).to_bytes(16) + UDP
ARP = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + bytes(20)
MACS = bytes(range(2, 14))
FRAME = MACS + b"\x08\x00" + V4
ICV = bytes(16)


def ethernet(ethertype: int, payload: bytes) -> bytes:
    return MACS + ethertype.to_bytes(2) + payload


def nsh(protocol: int, payload: bytes, words: int = 2) -> bytes:
    return bytes([0x0F, 0xC0 | words, 2, protocol]) + bytes(4 * words - 4) + payload


def pktap(linktype: int, payload: bytes, kind: int = 1, length: int = 108) -> bytes:
    return struct.pack("<III", length, kind, linktype) + bytes(length - 12) + payload


def ppi(linktype: int, payload: bytes) -> bytes:
    return struct.pack("<BBHI", 0, 0, 8, linktype) + payload


def ipnet(family: int, payload: bytes) -> bytes:
    return struct.pack("!BBHIIIII", 1, family, 0, len(payload), 1, 1, 0, 0) + payload


FOUND = [
    ("frame relay, NLPID of IPv4", 107, b"\x18\x41\x03\xcc" + V4, 4),
    ("frame relay, NLPID of IPv6", 107, b"\x18\x41\x03\x8e" + V6, 6),
    ("frame relay, padded NLPID", 107, b"\x18\x41\x03\x00\xcc" + V4, 4),
    ("frame relay, SNAP", 107, b"\x18\x41\x03\x80\x00\x00\x00\x08\x00" + V4, 4),
    ("frame relay, padded SNAP", 107, b"\x18\x41\x03\x00\x80\x00\x00\x00\x08\x00" + V4, 4),
    ("frame relay, bridged", 107, b"\x18\x41\x03\x00\x80\x00\x80\xc2\x00\x07" + FRAME, 4),
    ("frame relay, Cisco", 107, b"\x18\x41\x08\x00" + V4, 4),
    ("frame relay, 3-octet address", 107, b"\x18\x40\x41\x03\xcc" + V4, 4),
    ("frame relay, 4-octet address", 107, b"\x18\x40\x40\x41\x03\xcc" + V4, 4),
    ("ARCNET, RFC 1201", 129, b"\x01\x02\x00\x00\xd4\x00\x00\x01" + V4, 4),
    ("ARCNET, first fragment", 129, b"\x01\x02\x00\x00\xd4\x01\x00\x01" + V4, 4),
    ("ARCNET, RFC 1051", 129, b"\x01\x02\x00\x00\xf0" + V4, 4),
    ("ARCNET, IPv6", 129, b"\x01\x02\x00\x00\xc4\x00\x00\x01" + V6, 6),
    ("Juniper Ethernet", 178, b"MGC\x00" + FRAME, 4),
    ("Juniper Ethernet, extensions", 178, b"MGC\x80\x00\x06\x02\x01\x03\x02\x01\x0e" + FRAME, 4),
    ("IPNET, IPv4", 226, ipnet(2, V4), 4),
    ("IPNET, IPv6", 226, ipnet(26, V6), 6),
    ("IP over InfiniBand", 242, bytes(40) + b"\x08\x00\x00\x00" + V4, 4),
    ("PKTAP, Ethernet", 258, pktap(1, FRAME), 4),
    ("PKTAP, raw", 258, pktap(12, V6, length=156), 6),
    ("802.15.4, long source", 230, b"\x41\xd8\x01\xcd\xab\xff\xff" + bytes(8) + b"\x41" + V6, 6),
    ("802.15.4, short addresses", 230, b"\x61\x88\x01\xcd\xab\x01\x00\x02\x00\x41" + V6, 6),
    # tshark wants the checksum right, too.
    ("802.15.4, checksum", 195, b"\x61\x88\x01\xcd\xab\x01\x00\x02\x00\x41" + V6 + b"xy", 6),
    ("MACsec", 1, ethernet(0x88E5, bytes(5) + b"\x01\x08\x00" + V4 + ICV), 4),
    ("MACsec, SCI", 1, ethernet(0x88E5, b"\x20" + bytes(13) + b"\x08\x00" + V4 + ICV), 4),
    (
        "MACsec, short length",
        1,
        ethernet(0x88E5, b"\x00\x1e" + bytes(4) + b"\x08\x00" + V4 + ICV),
        4,
    ),
    ("NSH, IPv4", 1, ethernet(0x894F, nsh(1, V4, 6)), 4),
    ("NSH, IPv6", 1, ethernet(0x894F, nsh(2, V6)), 6),
    ("NSH, Ethernet", 1, ethernet(0x894F, nsh(3, FRAME)), 4),
    ("NSH, NSH", 1, ethernet(0x894F, nsh(4, nsh(1, V4))), 4),
    ("NSH, MPLS", 1, ethernet(0x894F, nsh(5, b"\x00\x01\x01\x40" + V4)), 4),
    ("Arista, 64 bits", 1, ethernet(0xD28B, b"\x00\x01\x00\x10" + bytes(8) + b"\x08\x00" + V4), 4),
    ("Arista, 48 bits", 1, ethernet(0xD28B, b"\x00\x01\x00\x20" + bytes(6) + b"\x08\x00" + V4), 4),
]

NOT_FOUND = [
    ("frame relay, one-octet address", 107, b"\x19\x03\xcc" + V4, Reason.LINK_MALFORMED),
    ("frame relay, endless address", 107, bytes(40), Reason.LINK_MALFORMED),
    ("frame relay, LMI", 107, b"\x00\x01\x03\x08\x00" + V4, Reason.NONE),
    # tshark reads the rest of a fragment as if it began with a header.
    ("ARCNET, later fragment", 129, b"\x01\x02\x00\x00\xd4\x02\x00\x01" + V4, Reason.NONE),
    ("Juniper, other magic", 178, b"JNP\x00" + FRAME, Reason.LINK_MALFORMED),
    ("Juniper, no link layer", 178, b"MGC\x02" + V4, Reason.NONE),
    ("PKTAP, no packet", 258, pktap(1, FRAME, kind=0), Reason.NONE),
    ("PKTAP in PKTAP", 258, pktap(258, pktap(1, FRAME)), Reason.UNKNOWN_LINKTYPE),
    # 32 bits, where those of captures are 16: the rest is for link types of gscope's own.
    ("PKTAP, flow record", 258, pktap(1 << 16, bytes(120)), Reason.UNKNOWN_LINKTYPE),
    ("PKTAP, flow record, reason", 258, pktap(1 << 16, b"\xff" * 8), Reason.UNKNOWN_LINKTYPE),
    ("PPI, flow record", 192, ppi(1 << 16, bytes(120)), Reason.UNKNOWN_LINKTYPE),
    ("PPI, flow record, reason", 192, ppi(1 << 16, b"\x64" * 8), Reason.UNKNOWN_LINKTYPE),
    ("PPI, 32 bits", 192, ppi(1 << 16 | 1, FRAME), Reason.UNKNOWN_LINKTYPE),
    ("PKTAP, short header", 258, struct.pack("<III", 8, 1, 1) + FRAME, Reason.LINK_MALFORMED),
    (
        "802.15.4, compressed and cut off",
        230,
        b"\x61\x88\x01\xcd\xab\x01\x00\x02\x00\x7a\x33",
        Reason.LINK_TRUNCATED,
    ),
    ("MACsec, encrypted", 1, ethernet(0x88E5, b"\x0c" + bytes(5) + b"\x08\x00" + V4), Reason.NONE),
    ("MACsec, changed", 1, ethernet(0x88E5, b"\x04" + bytes(5) + b"\x08\x00" + V4), Reason.NONE),
    ("NSH, too short", 1, ethernet(0x894F, nsh(1, V4, 1) + bytes(8)), Reason.LINK_MALFORMED),
    ("Arista, other", 1, ethernet(0xD28B, b"\x00\x02\x00\x10" + bytes(8) + V4), Reason.NONE),
    # tshark takes the version of the header for the link type; these two say which version it is.
    ("LINKTYPE_IPV4 with IPv6", 228, V6, Reason.IP_BAD_VERSION),
    ("LINKTYPE_IPV6 with IPv4", 229, V4, Reason.IP_BAD_VERSION),
]


def both(linktype: int, data: bytes) -> tuple[dict[str, int | bytes | None], Reason]:
    """What kernel and dissector say, which is the same."""
    packet = RawPacket(linktype, data, len(data), 10**18)
    (by_kernel,) = read_packets([packet])
    assert by_kernel == dissect(data, linktype=linktype, wirelen=len(data), time_ns=10**18)
    return by_kernel


@pytest.mark.parametrize(
    ("linktype", "data", "version"), [case[1:] for case in FOUND], ids=[c[0] for c in FOUND]
)
def test_ip_is_found(linktype: int, data: bytes, version: int) -> None:
    fields, reason = both(linktype, data)
    assert reason is Reason.NONE
    assert (fields["ipversion"], fields["srcPort"], fields["destPort"]) == (version, 1000, 2000)
    low = {4: 0x0A000001, 6: 1}[version]
    assert isinstance(fields["srcIP"], int)
    assert fields["srcIP"] & 0xFFFFFFFF == low
    assert fields["data"] == b""


@pytest.mark.parametrize(
    ("linktype", "data", "reason"), [case[1:] for case in NOT_FOUND], ids=[c[0] for c in NOT_FOUND]
)
def test_ip_is_not_found(linktype: int, data: bytes, reason: Reason) -> None:
    fields, found = both(linktype, data)
    assert (fields["ipversion"], found) == (None, reason)


@pytest.mark.parametrize(
    ("linktype", "data"),
    [
        (129, b"\x01\x02\x00\x00\xd5\x00\x00\x01" + ARP),
        (129, b"\x01\x02\x00\x00\xf1" + ARP),
        (107, b"\x18\x41\x03\x80\x00\x00\x00\x08\x06" + ARP),
    ],
)
def test_arp_is_found(linktype: int, data: bytes) -> None:
    fields, reason = both(linktype, data)
    assert (fields["op"], reason) == (1, Reason.NONE)


@pytest.mark.parametrize(
    ("linktype", "data"), [case[1:3] for case in FOUND], ids=[c[0] for c in FOUND]
)
def test_cut_anywhere_both_say_the_same(linktype: int, data: bytes) -> None:
    for size in range(len(data)):
        both(linktype, data[:size])


def test_the_type_behind_a_switch_s_time_stamp_counts() -> None:
    fields, _ = both(1, ethernet(0xD28B, b"\x00\x01\x00\x10" + bytes(8) + b"\x08\x00" + V4))
    assert fields["ethertype"] == 0x0800
