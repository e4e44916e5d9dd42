"""The slow dissector's path from the link layer to the network header; see ``dissect``.

A layer is a function of (frame, at) that returns the next layer and its position, or None at the
end. ``frame`` collects the link-layer fields on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from enum import Enum

from gscope.capture.packet.decode_errors import Reason
from gscope.records import dataclass

MAX_LAYERS = 256


class DecodeFailure(Exception):
    """Raised when a packet cannot be decoded further."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.name)
        self.reason = reason


@dataclass(slots=True)
class Frame:
    """A packet while its link layers are decoded.

    Attributes:
        data: the captured bytes; after the expansion of a compressed header, those of the packet
            alone.
        end: one past the last byte of the layer that encloses the current one.
        wire_end: end of the whole frame on the wire.
        ethertype: the first EtherType that is not a tag; 0 for none.
        vlans: ids of all VLAN tags, outermost first.
        destination: offset of the outermost destination MAC in ``data``; None if there is none.
        source: offset of the outermost source MAC in ``data``; None if there is none.
    """

    data: bytes
    end: int
    wire_end: int
    ethertype: int = 0
    vlans: list[int] = field(default_factory=list)
    destination: int | None = None
    source: int | None = None

    def number(self, at: int, size: int, order: str = "big") -> int:
        """Return the unsigned number of ``size`` bytes at ``at``.

        Raises:
            DecodeFailure: the number is not captured completely.
        """
        if at + size > self.end:
            raise DecodeFailure(Reason.LINK_TRUNCATED)
        return int.from_bytes(self.data[at : at + size], "little" if order == "little" else "big")

    def require(self, at: int, size: int) -> None:
        """Check that ``size`` bytes at ``at`` are captured.

        Raises:
            DecodeFailure: they are not.
        """
        if at + size > self.end:
            raise DecodeFailure(Reason.LINK_TRUNCATED)


class Network(Enum):
    """The network headers at which decoding of the link layer ends."""

    IP = "IP of either version"
    IPV4 = "IP that must be of version 4"
    IPV6 = "IP that must be of version 6"
    ARP = "ARP"


Layer = Callable[["Frame", int], "Next"] | Network
Next = tuple[Layer, int] | None


def follow(frame: Frame, layer: Layer, at: int) -> tuple[Network, int] | None:
    """Return the network layer reached from ``layer`` at ``at``, and its position.

    None if there is none.

    Raises:
        DecodeFailure: the bytes end before that, are inconsistent, or nest too deeply.
    """
    for _ in range(MAX_LAYERS):
        if isinstance(layer, Network):
            return layer, at
        following = layer(frame, at)
        if following is None:
            return None
        layer, at = following
    raise DecodeFailure(Reason.TOO_DEEP)


def ethernet(frame: Frame, at: int) -> Next:
    """Decode Ethernet II or IEEE 802.3; the outermost addresses count."""
    frame.require(at, 14)
    if frame.destination is None and frame.source is None:
        frame.destination, frame.source = at, at + 6
    return _typed_or_long(frame, at + 12)


def _typed_or_long(frame: Frame, at: int) -> Next:
    value = frame.number(at, 2)
    at += 2
    if value >= 0x600:
        return ethertype(value), at
    if value > 1500:
        raise DecodeFailure(Reason.LINK_MALFORMED)
    if value == 0:
        return None
    frame.end = min(frame.end, at + value)
    if frame.data[at : min(at + 2, frame.end)] == b"\xff\xff":
        return None
    return llc, at


def ethertype(value: int) -> Layer:
    """Return the layer that records the type and continues with the header that it identifies."""

    def note(frame: Frame, at: int) -> Next:
        if frame.ethertype == 0 and value not in _TAGS:
            frame.ethertype = value
        layer = _ETHERTYPES.get(value)
        return None if layer is None else (layer, at)

    return note


def _vlan(frame: Frame, at: int) -> Next:
    frame.require(at, 4)
    frame.vlans.append(frame.number(at, 2) % 4096)
    return _typed_or_long(frame, at + 2)


def _type_after(skip: int) -> Layer:
    def tag(frame: Frame, at: int) -> Next:
        return ethertype(frame.number(at + skip, 2)), at + skip + 2

    return tag


def _arista(frame: Frame, at: int) -> Next:
    size = {0x10: 12, 0x110: 12, 0x20: 10, 0x120: 10}
    subtype, version = frame.number(at, 2), frame.number(at + 2, 2)
    if subtype != 1 or version not in size:
        return None
    at += size[version]
    return ethertype(frame.number(at, 2)), at + 2


def _macsec(frame: Frame, at: int) -> Next:
    frame.require(at, 6)
    control, short = frame.data[at], frame.data[at + 1] % 64
    if control & 0x80 or control & 0x0C:
        return None
    at += 14 if control & 0x20 else 6
    value = frame.number(at, 2)
    if short:
        frame.end = min(frame.end, at + max(short, 2))
    return ethertype(value), at + 2


def _nsh(frame: Frame, at: int) -> Next:
    frame.require(at, 8)
    length = frame.data[at + 1] % 64 * 4
    if length < 8:
        raise DecodeFailure(Reason.LINK_MALFORMED)
    frame.require(at, length)
    layers: dict[int, Layer] = {
        1: Network.IPV4,
        2: Network.IPV6,
        3: ethernet,
        4: ethertype(0x894F),
        5: mpls,
    }
    layer = layers.get(frame.data[at + 3])
    return None if layer is None else (layer, at + length)


def llc(frame: Frame, at: int) -> Next:
    """Decode IEEE 802.2, with SNAP or the SAP of IP."""
    destination, source, control = (frame.number(at + i, 1) for i in range(3))
    unnumbered = control % 4 == 3
    at += 3 if unnumbered else 4
    if control % 2 == 1 and control & ~0x10 != 0x03:
        return None
    if (destination, source) == (0xAA, 0xAA):
        organization, protocol = frame.number(at, 3), frame.number(at + 3, 2)
        if organization in (0, 0xF8):
            return ethertype(protocol), at + 5
        if organization == 0x80C2 and protocol in (1, 7):
            return ethernet, at + 7
        return None
    return (Network.IP, at) if destination == 6 else None


def ppp(frame: Frame, at: int) -> Next:
    """Decode PPP from its protocol number, which may be compressed to one byte."""
    size = 1 if frame.number(at, 1) % 2 else 2
    layer = _PPP_PROTOCOLS.get(frame.number(at, size))
    return None if layer is None else (layer, at + size)


def ppp_hdlc(frame: Frame, at: int) -> Next:
    """Decode PPP with or without address and control, or Cisco HDLC."""
    begin = frame.number(at, 2)
    if begin >> 8 == 0xFF:
        return ppp, at + 2
    return (chdlc, at) if begin >> 8 in (0x0F, 0x8F) else (ppp, at)


def chdlc(frame: Frame, at: int) -> Next:
    """Decode Cisco HDLC."""
    protocol = frame.number(at + 2, 2)
    return (ethertype(protocol), at + 4) if protocol in _CHDLC_TYPES else None


def pppoe(frame: Frame, at: int) -> Next:
    """Decode PPPoE, session stage."""
    frame.require(at, 6)
    frame.end = min(frame.end, at + 6 + frame.number(at + 4, 2))
    return ppp, at + 6


def mpls(frame: Frame, at: int) -> Next:
    """Decode a label stack; special labels and the four bits after it identify the payload."""
    while True:
        entry = frame.number(at, 4)
        at += 4
        if entry & 0x100:
            break
    label = entry >> 12
    nibble = frame.number(at, 1) >> 4
    if label in (13, 14):
        return None
    if nibble in (4, 6):
        return Network.IP, at
    return _pseudowire(frame, at) if nibble == 0 else None


def _pseudowire(frame: Frame, at: int) -> Next:
    """Decode a pseudowire's Ethernet frame, with or without a control word."""

    def has_type(begin: int) -> bool:
        known = begin + 14 <= frame.end
        return known and frame.number(begin + 12, 2) in _PSEUDOWIRE_TYPES

    without = has_type(at) and not has_type(at + 4)
    return ethernet, at if without else at + 4


_VLANS = (0x8100, 0x88A8, 0x9100)
_TAGS = (*_VLANS, 0x8926, 0x893F, 0xD28B)
_PSEUDOWIRE_TYPES = (0x0800, 0x0806, 0x86DD, 0x8847, *_VLANS)
_CHDLC_TYPES = (0x0800, 0x86DD, 0x8847, 0x8848)
_ETHERTYPES: dict[int, Layer] = {
    0x0800: Network.IPV4,
    0x0806: Network.ARP,
    0x6558: ethernet,
    0x86DD: Network.IPV6,
    0x880B: ppp,
    0x8847: mpls,
    0x8848: mpls,
    0x8864: pppoe,
    0x8870: llc,
    0x88E5: _macsec,
    0x88E7: _type_after(16),
    0x894F: _nsh,
    0xD28B: _arista,
    0x8926: _type_after(4),
    0x893F: _type_after(6),
    **dict.fromkeys(_VLANS, _vlan),
}
_PPP_PROTOCOLS: dict[int, Layer] = {
    0x0021: Network.IP,
    0x0057: Network.IPV6,
    0x0281: mpls,
    0x0283: mpls,
    0x0800: Network.IP,
    0x86DD: Network.IPV6,
}
