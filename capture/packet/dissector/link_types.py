"""The slow dissector's link types: the first layer of each; see ``dissect``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.dissector.link_headers import (
    DecodeFailure,
    Frame,
    Network,
    Next,
    chdlc,
    ethernet,
    ethertype,
    llc,
    ppp_hdlc,
    pppoe,
)
from gscope.capture.packet.dissector.lowpan import lowpan, lowpan_with_checksum
from gscope.capture.packet.dissector.rare_links import (
    arcnet,
    frame_relay,
    infiniband,
    ipnet,
    juniper_ethernet,
)

if TYPE_CHECKING:
    from gscope.capture.packet.dissector.link_headers import Layer


def first_layer(linktype: int) -> Layer:
    """Return the first layer of packets of a pcap link type.

    Raises:
        DecodeFailure: gscope does not decode the link type.
    """
    if linktype not in _LINKTYPES:
        raise DecodeFailure(Reason.UNKNOWN_LINKTYPE)
    return _LINKTYPES[linktype]


def _null(frame: Frame, at: int) -> Next:
    frame.require(at, 4)
    raw = frame.data[at : at + 4]
    if raw[:2] == b"\xff\x03":
        return ppp_hdlc, at
    little, big = int.from_bytes(raw, "little"), int.from_bytes(raw, "big")
    if raw[2:] != b"\0\0":
        # Either the other byte order, or IRIX's 16-bit family.
        family = raw[2] if raw[3] == 0 and raw[2] < 6 else big
    else:
        family = raw[1] if raw[0] == 0 and raw[1] < 6 else little
    if family > 1500:
        return ethertype(family % 65536), at + 4
    return _family(family, at + 4)


def _loop(frame: Frame, at: int) -> Next:
    return _family(frame.number(at, 4), at + 4)


def _family(family: int, at: int) -> Next:
    layer = {2: Network.IPV4, 24: Network.IPV6, 28: Network.IPV6, 30: Network.IPV6}.get(family)
    return None if layer is None else (layer, at)


def _sll(frame: Frame, at: int) -> Next:
    frame.require(at, 16)
    if frame.number(at + 4, 2) == 6:
        frame.source = at + 6
    return _cooked(frame.number(at + 2, 2), frame.number(at + 14, 2), at + 16)


def _sll2(frame: Frame, at: int) -> Next:
    frame.require(at, 20)
    if frame.number(at + 11, 1) == 6:
        frame.source = at + 12
    return _cooked(frame.number(at + 8, 2), frame.number(at, 2), at + 20)


def _cooked(hardware: int, protocol: int, at: int) -> Next:
    if hardware == 824:
        return None
    if protocol > 1536 or hardware == 778:
        return ethertype(protocol), at
    layers: dict[int, Layer] = {3: ethernet, 4: llc, 7: ppp_hdlc}
    return (layers[protocol], at) if protocol in layers else None


def _fddi(frame: Frame, at: int) -> Next:
    frame.require(at, 13)
    frame.destination, frame.source = at + 1, at + 7
    return (llc, at + 13) if frame.number(at, 1) >> 4 == 5 else None


def _ppi(frame: Frame, at: int) -> Next:
    frame.require(at, 8)
    length = frame.number(at + 2, 2, "little")
    linktype = frame.number(at + 4, 4, "little")
    if length < 8:
        raise DecodeFailure(Reason.LINK_MALFORMED)
    frame.require(at, length)
    if linktype in (192, 258):
        raise DecodeFailure(Reason.UNKNOWN_LINKTYPE)
    return first_layer(linktype), at + length


def _pktap(frame: Frame, at: int) -> Next:
    frame.require(at, 12)
    length, kind, linktype = (frame.number(at + n, 4, "little") for n in (0, 4, 8))
    if length < 12:
        raise DecodeFailure(Reason.LINK_MALFORMED)
    if kind != 1:
        return None
    frame.require(at, length)
    if linktype in (192, 258):
        raise DecodeFailure(Reason.UNKNOWN_LINKTYPE)
    return first_layer(linktype), at + length


def _radiotap(frame: Frame, at: int) -> Next:
    frame.require(at, 8)
    length = frame.number(at + 2, 2, "little")
    if length < 8:
        raise DecodeFailure(Reason.LINK_MALFORMED)
    frame.require(at, length)
    words = [frame.number(at + 4, 4, "little")]
    position = 8
    while words[-1] >> 31 and position + 4 <= length:
        words.append(frame.number(at + position, 4, "little"))
        position += 4
    if words[0] & 1:
        position = (position + 7) // 8 * 8 + 8
    flags = 0
    if words[0] & 2 and position < length:
        flags = frame.number(at + position, 1)
    if flags & 0x10:
        frame.end = max(at + length, frame.end - 4)
    return _wlan(frame, at + length, is_padded=bool(flags & 0x20))


def _bare_wlan(frame: Frame, at: int) -> Next:
    return _wlan(frame, at, is_padded=False)


def _wlan(frame: Frame, at: int, *, is_padded: bool) -> Next:
    frame.require(at, 24)
    control, flags = frame.data[at], frame.data[at + 1]
    if control % 16 != 8:
        return None
    has_qos, has_no_data = bool(control & 0x80), bool(control & 0x40)
    length = 30 if flags & 3 == 3 else 24
    is_aggregate = False
    if has_qos:
        is_aggregate = frame.number(at + length, 2) & 0x8000 != 0
        length += 6 if flags & 0x80 else 2
    if is_padded:
        length = (length + 3) // 4 * 4
    frame.require(at, length)
    # Offsets of destination and source, by to-DS and from-DS.
    destination, source = {0: (4, 10), 1: (16, 10), 2: (4, 16), 3: (16, 24)}[flags & 3]
    frame.destination, frame.source = at + destination, at + source
    if has_no_data or flags & 0x44:
        return None
    at += length
    if is_aggregate:
        frame.destination = frame.source = None
        frame.require(at, 14)
        frame.destination, frame.source = at, at + 6
        frame.end = min(frame.end, at + 14 + frame.number(at + 12, 2))
        at += 14
    return llc, at


def _nflog(frame: Frame, at: int) -> Next:
    frame.require(at, 4)
    family = frame.data[at]
    at += 4
    plausible = [order for order in ("big", "little") if _is_plausible(frame, at, order)]
    order = plausible[0] if plausible else "big"
    payload: tuple[int, int] | None = None
    while at + 4 <= frame.end:
        length = frame.number(at, 2, order)
        if length < 4:
            raise DecodeFailure(Reason.LINK_MALFORMED)
        if frame.number(at + 2, 2, order) % 0x8000 == 9:
            payload = at + 4, min(frame.end, at + length)
        at += (length + 3) // 4 * 4
    layer = {2: Network.IPV4, 10: Network.IPV6}.get(family)
    if payload is None or layer is None:
        return None
    at, frame.end = payload
    return layer, at


def _is_plausible(frame: Frame, at: int, order: str) -> bool:
    while at + 4 < frame.end:
        length, kind = frame.number(at, 2, order), frame.number(at + 2, 2, order) % 0x8000
        if length < 4 or kind >= 256:
            return False
        if kind:
            return True
        at += (length + 3) // 4 * 4
    return False


_LINKTYPES: dict[int, Layer] = {
    0: _null,
    1: ethernet,
    9: ppp_hdlc,
    10: _fddi,
    12: Network.IP,
    14: Network.IP,
    50: ppp_hdlc,
    51: pppoe,
    101: Network.IP,
    104: chdlc,
    105: _bare_wlan,
    107: frame_relay,
    108: _loop,
    113: _sll,
    127: _radiotap,
    129: arcnet,
    178: juniper_ethernet,
    192: _ppi,
    195: lowpan_with_checksum,
    226: ipnet,
    228: Network.IPV4,
    229: Network.IPV6,
    230: lowpan,
    239: _nflog,
    242: infiniband,
    258: _pktap,
    276: _sll2,
}
