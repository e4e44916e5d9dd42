"""Hypothesis strategies of packets.

Valid ones of every link type, then mutated, cut and extended.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from tests.capture.packet.kernel_reader import RawPacket

if TYPE_CHECKING:
    from collections.abc import Callable

MACS = bytes.fromhex("020000000001020000000002")
TUNNEL_PORTS = (53, 2152, 3544, 4789, 4790, 6081)


def _tcp(draw: st.DrawFn) -> bytes:
    offset = draw(st.sampled_from((5, 5, 5, 8, 4, 15)))
    flags = draw(st.integers(0, 255))
    options = bytes(max(0, offset - 5) * 4)
    return struct.pack(">HHIIBBHHH", 443, 50000, 7, 8, offset << 4, flags, 512, 0, 0) + options


def _transport(draw: st.DrawFn, protocol: int, depth: int) -> bytes:
    rest = draw(st.binary(max_size=20))
    if protocol == 6:
        return _tcp(draw) + rest
    if protocol == 17:
        port = draw(st.sampled_from(TUNNEL_PORTS))
        body = _tunnel(draw, port, depth) if port != 53 else rest
        return struct.pack(">HHHH", 50000, port, len(body) + 8, 0) + body
    if protocol == 47:
        return _gre(draw, depth)
    if protocol in (4, 41):
        return _ip(draw, depth + 1)
    if protocol in (1, 58):
        kind = draw(st.sampled_from((0, 3, 8, 11, 13, 128, 129, 135)))
        return struct.pack(">BBHHH", kind, 0, 0, 77, 3) + rest
    return rest


def _tunnel(draw: st.DrawFn, port: int, depth: int) -> bytes:
    inner = _ip(draw, depth + 1)
    if port == 2152:
        flags = draw(st.sampled_from((0x30, 0x32, 0x34, 0x20)))
        extra = {0x30: b"", 0x32: bytes(4), 0x34: b"\0\0\0\x85\x01\0\0\0", 0x20: b""}[flags]
        return bytes([flags, 255]) + bytes(6) + extra + inner
    if port == 3544:
        lead = draw(st.sampled_from((b"", bytes(8), b"\0\1\0\0" + bytes(9))))
        return lead + inner
    if port == 6081:
        options = draw(st.integers(0, 2))
        return bytes([options, 0]) + _type_of(inner) + bytes(4 + 4 * options) + inner
    if port == 4790:
        following = draw(st.sampled_from((1, 2, 3)))
        return bytes([12, 0, 0, following]) + bytes(4) + inner
    return bytes([8]) + bytes(7) + MACS + _type_of(inner) + inner


def _gre(draw: st.DrawFn, depth: int) -> bytes:
    inner = _ip(draw, depth + 1)
    flags = draw(st.sampled_from((0, 0x1000, 0x2000, 0xB000, 0x3081, 0x4000)))
    kind = draw(st.sampled_from((0, 0x6558, 0x88BE, 0x22EB, 0x883E, 0x880B, 0x8847)))
    skipped = 4 * ((flags >> 12 & 0xB).bit_count() + (flags >> 7 & 1))
    frame = MACS + _type_of(inner) + inner
    body = {
        0x6558: frame,
        0x88BE: (bytes(8) if flags & 0x1000 else b"") + frame,
        0x22EB: bytes(11) + draw(st.sampled_from((b"\0", b"\1" + bytes(8)))) + frame,
        0x880B: b"\xff\x03\0\x21" + inner,
        0x8847: b"\0\1\1\x40" + inner,
    }.get(kind, inner)
    return (
        flags.to_bytes(2, "big")
        + (kind.to_bytes(2, "big") if kind else _type_of(inner))
        + (bytes(skipped) + body)
    )


def _type_of(packet: bytes) -> bytes:
    return b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\0"


def _ip(draw: st.DrawFn, depth: int = 0) -> bytes:
    plain = (6, 17, 132, 1, 58, 50)
    protocol = draw(st.sampled_from(plain if depth > 1 else (*plain, 17, 4, 41, 47, 137)))
    body = _transport(draw, protocol, depth)
    if draw(st.booleans()):
        return _ipv4(draw, protocol, body)
    return _ipv6(draw, protocol, body)


def _ipv4(draw: st.DrawFn, protocol: int, body: bytes) -> bytes:
    words = draw(st.sampled_from((5, 5, 5, 6, 15, 4)))
    options = bytes(4 * max(0, words - 5))
    fragment = draw(st.sampled_from((0, 0, 0, 0x4000, 0x2000, 0x2003, 7)))
    total = draw(st.sampled_from((20 + len(options) + len(body),) * 6 + (0, 19, 21)))
    lead = struct.pack(">BBHHHBBH", 0x40 | words, 0xB9, total, 99, fragment, 64, protocol, 0)
    return lead + bytes([10, 1, 2, 3, 10, 4, 5, 6]) + options + body


def _ipv6(draw: st.DrawFn, protocol: int, body: bytes) -> bytes:
    for extension in draw(st.lists(st.sampled_from((0, 43, 44, 60)), max_size=2)):
        if extension == 44:
            offset = draw(st.sampled_from((0, 1, 8, 9)))
            body = struct.pack(">BBHI", protocol, 0, offset, 5) + body
        else:
            body = bytes([protocol, 1]) + bytes(14) + body
        protocol = extension
    length = draw(st.sampled_from((len(body),) * 6 + (0, 3)))
    addresses = bytes.fromhex("20010db8" + "00" * 11 + "01" + "20010db8" + "00" * 11 + "02")
    return struct.pack(">IHBB", 0x6B9ABCDE, length, protocol, 64) + addresses + body


def _typed(draw: st.DrawFn, depth: int = 0) -> bytes:
    """An Ethernet type and what it names."""
    inner = _ip(draw)
    ppp = b"\0\x57" if inner[0] >> 4 == 6 else draw(st.sampled_from((b"\0\x21", b"\x21"))) + b""
    plain = _type_of(inner) + inner
    label = draw(st.sampled_from((b"\0\0\x01\x40", b"\0\x64\0\x40\0\x01\x01\x40")))
    choices: list[Callable[[], bytes]] = [
        lambda: plain,
        lambda: b"\x08\x06\0\1\x08\0\6\4\0\1" + MACS + inner[:8],
        lambda: draw(st.sampled_from((b"\x88\x47", b"\x88\x48"))) + label + inner,
        lambda: b"\x88\x47" + label + bytes(4) + MACS + plain,
        lambda: b"\x88\x64\x11\0\0\5" + struct.pack(">H", len(inner) + len(ppp)) + ppp + inner,
        lambda: b"\x88\x70\xaa\xaa\3\0\0\0" + plain,
    ]
    if depth < 2:
        choices += [
            lambda: b"\x81\0\x20\x05" + _typed(draw, depth + 1),
            lambda: b"\x88\xa8\x30\x06" + _typed(draw, depth + 1),
            lambda: b"\x91\0\x40\x07" + _typed(draw, depth + 1),
            lambda: b"\x88\xe7" + bytes(4) + MACS + _typed(draw, depth + 1),
            lambda: b"\x89\x26" + bytes(4) + _typed(draw, depth + 1),
            lambda: b"\x89\x3f" + bytes(6) + _typed(draw, depth + 1),
            lambda: b"\x65\x58" + MACS + _typed(draw, depth + 1),
        ]
    return draw(st.sampled_from(choices))()


def _llc(draw: st.DrawFn) -> bytes:
    ip = _ip(draw)
    return draw(
        st.sampled_from(
            (
                b"\xaa\xaa\3\0\0\0" + _type_of(ip) + ip,
                b"\6\6\3" + ip,
                b"\xaa\xaa\3\0\x80\xc2\0\7\0\0" + MACS + _type_of(ip) + ip,
                b"\xff\xff" + ip,
            )
        )
    )


def _ethernet(draw: st.DrawFn) -> bytes:
    if draw(st.integers(0, 4)) == 0:
        llc = _llc(draw)
        return MACS + len(llc).to_bytes(2, "big") + llc + bytes(draw(st.integers(0, 4)))
    return MACS + _typed(draw)


def _family(draw: st.DrawFn) -> bytes:
    ip = _ip(draw)
    family = draw(st.sampled_from((24, 28, 30))) if ip[0] >> 4 == 6 else 2
    order = draw(st.sampled_from(("<I", ">I", "<HH", ">HH")))
    return (struct.pack(order, family) if "HH" not in order else struct.pack(order, family, 0)) + ip


def _ppp(draw: st.DrawFn) -> bytes:
    ip = _ip(draw)
    lead = draw(st.sampled_from((b"\xff\x03", b"", b"\x0f\0")))
    if lead == b"\x0f\0":
        return lead + _type_of(ip) + ip
    return lead + (b"\0\x57" if ip[0] >> 4 == 6 else b"\x21") + ip


def _chdlc(draw: st.DrawFn) -> bytes:
    return b"\x0f\0" + _typed(draw)


def _fddi(draw: st.DrawFn) -> bytes:
    return b"\x50" + MACS + _llc(draw)


def _wlan(draw: st.DrawFn) -> bytes:
    has_qos, directions = draw(st.booleans()), draw(st.integers(0, 3))
    flags = directions | draw(st.sampled_from((0, 0, 0, 0x40, 0x80, 4)))
    frame = bytes([0x88 if has_qos else 0x08, flags, 0, 0]) + bytes(range(18)) + b"\x10\0"
    if directions == 3:
        frame += bytes(range(6))
    llc = _llc(draw)
    if has_qos:
        is_aggregate = draw(st.booleans())
        frame += bytes([0x80 if is_aggregate else 0, 0]) + bytes(4 if flags & 0x80 else 0)
        if is_aggregate:
            llc = MACS + len(llc).to_bytes(2, "big") + llc
    return frame + llc


def _radiotap(draw: st.DrawFn) -> bytes:
    flags = draw(st.sampled_from((0, 0x10, 0x20)))
    head = draw(
        st.sampled_from(
            (
                struct.pack("<BBHI", 0, 0, 8, 0),
                struct.pack("<BBHIB", 0, 0, 9, 2, flags),
                struct.pack("<BBHI8sB", 0, 0, 17, 3, b"", flags),
                struct.pack("<BBHII4x8sB", 0, 0, 25, 3 | 1 << 31, 0, b"", flags),
            )
        )
    )
    return head + _wlan(draw)


def _ppi(draw: st.DrawFn) -> bytes:
    linktype, make = draw(st.sampled_from(((1, _ethernet), (105, _wlan), (0, _family))))
    return struct.pack("<BBHI", 0, 0, 12, linktype) + bytes(4) + make(draw)


def _sll(draw: st.DrawFn) -> bytes:
    hardware = draw(st.sampled_from((1, 1, 778, 824)))
    size = draw(st.sampled_from((6, 6, 0)))
    lead = struct.pack(">HHH8s", 0, hardware, size, MACS[:6])
    return lead + draw(st.sampled_from((_typed(draw), b"\0\4" + _llc(draw), b"\0\7" + _ppp(draw))))


def _sll2(draw: st.DrawFn) -> bytes:
    typed = _typed(draw)
    return struct.pack(">2s2xIHBB8s", typed[:2], 2, 1, 0, 6, MACS[:6]) + typed[2:]


def _nflog(draw: st.DrawFn) -> bytes:
    ip = _ip(draw)
    order = draw(st.sampled_from("<>"))

    def attribute(kind: int, value: bytes) -> bytes:
        return struct.pack(order + "HH", len(value) + 4, kind) + value + bytes(-len(value) % 4)

    family = 10 if ip[0] >> 4 == 6 else 2
    return bytes([family, 0, 0, 1]) + attribute(10, b"log\0\0") + attribute(9, ip)


def _bare(draw: st.DrawFn) -> bytes:
    return _ip(draw)


def _pppoe(draw: st.DrawFn) -> bytes:
    ip = _ip(draw)
    return b"\x11\0\0\1" + struct.pack(">H", len(ip) + 2) + b"\0\x21" + ip


def _frame_relay(draw: st.DrawFn) -> bytes:
    ip = _ip(draw)
    is_v6 = ip[0] >> 4 == 6
    address = draw(st.sampled_from((b"\x18\x41", b"\x18\x40\x41", b"\x18\x40\x40\x41")))
    lead = draw(
        st.sampled_from(
            (
                b"\x03" + (b"\x8e" if is_v6 else b"\xcc"),
                b"\x03\0" + (b"\x8e" if is_v6 else b"\xcc"),
                b"\x03\x80\0\0\0" + _type_of(ip),
                b"\x03\0\x80\0\x80\xc2\0\7" + MACS + _type_of(ip),
                _type_of(ip),
            )
        )
    )
    return address + lead + ip


def _arcnet(draw: st.DrawFn) -> bytes:
    ip = _ip(draw)
    lead = draw(st.sampled_from((b"\xd4\0\0\1", b"\xf0", b"\xd4\1\0\1", b"\xc4\0\0\1")))
    return b"\1\2\0\0" + lead + ip


def _juniper(draw: st.DrawFn) -> bytes:
    lead = draw(st.sampled_from((b"MGC\0", b"MGC\x80\0\3abc", b"MGC\2")))
    return lead + _ethernet(draw)


def _ipnet(draw: st.DrawFn) -> bytes:
    ip = _ip(draw)
    return struct.pack("!BB22x", 1, 26 if ip[0] >> 4 == 6 else 2) + ip


def _infiniband(draw: st.DrawFn) -> bytes:
    ip = _ip(draw)
    return bytes(40) + _type_of(ip) + b"\0\0" + ip


def _pktap(draw: st.DrawFn) -> bytes:
    return struct.pack("<III4x", 16, 1, 1) + _ethernet(draw)


def _lowpan(draw: st.DrawFn) -> bytes:
    lead = draw(
        st.sampled_from((b"\x61\x88\1\xcd\xab\1\0\2\0", b"\x41\xd8\1\xcd\xab\xff\xff" + bytes(8)))
    )
    if draw(st.booleans()):
        return lead + b"\x41" + _ip(draw)
    flags = 0x60 | draw(st.integers(0, 31))
    return lead + bytes([flags, draw(st.integers(0, 255))]) + draw(st.binary(max_size=60))


LINK_TYPES: dict[int, Callable[[st.DrawFn], bytes]] = {
    0: _family,
    1: _ethernet,
    9: _ppp,
    10: _fddi,
    12: _bare,
    14: _bare,
    50: _ppp,
    51: _pppoe,
    101: _bare,
    104: _chdlc,
    105: _wlan,
    107: _frame_relay,
    108: _family,
    113: _sll,
    127: _radiotap,
    129: _arcnet,
    147: _bare,
    178: _juniper,
    192: _ppi,
    195: _lowpan,
    226: _ipnet,
    228: _bare,
    229: _bare,
    230: _lowpan,
    239: _nflog,
    242: _infiniband,
    258: _pktap,
    276: _sll2,
}


@st.composite
def packets(draw: st.DrawFn) -> RawPacket:
    """A packet of any link type, most of them with a few bytes changed or the end cut off."""
    linktype = draw(st.sampled_from((1, 1, 1, *LINK_TYPES)))
    data = bytearray(LINK_TYPES[linktype](draw))
    wirelen = len(data)
    for _ in range(draw(st.sampled_from((0, 0, 1, 2)))):
        data[draw(st.integers(0, len(data) - 1))] = draw(
            st.sampled_from((0, 1, 4, 6, 8, 17, 0x45, 0x60, 0xFF)) | st.integers(0, 255)
        )
    if draw(st.booleans()):
        del data[draw(st.integers(0, len(data))) :]
    return RawPacket(linktype, bytes(data), wirelen, draw(st.integers(0, 2**62)))
