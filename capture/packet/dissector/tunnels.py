"""The slow dissector's tunnels: the packets that IP packets encapsulate; see ``dissect``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.dissector.link_headers import (
    DecodeFailure,
    Frame,
    Network,
    Next,
    ethernet,
    ethertype,
    mpls,
    ppp_hdlc,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.capture.packet.dissector.link_headers import Layer


def tunnel_layer(frame: Frame, protocol: int, at: int) -> Next:
    """Return the first layer inside an IP packet whose transport begins at ``at``.

    None if it is not a tunnel.

    Raises:
        DecodeFailure: the tunnel's header is truncated or inconsistent.
    """
    if protocol == 17:
        if at + 8 > frame.end:
            return None
        for port in (frame.number(at + 2, 2), frame.number(at, 2)):
            if port in _UDP_TUNNELS:
                found = _UDP_TUNNELS[port](frame, at + 8)
                if found is not None:
                    return found
        return None
    if protocol == 47:
        return _gre(frame, at)
    layer = _PROTOCOLS.get(protocol)
    return None if layer is None else (layer, at)


def _gre(frame: Frame, at: int) -> Next:
    flags, protocol = frame.number(at, 2), frame.number(at + 2, 2)
    checksum, routing, key, sequence = (
        bool(flags & bit) for bit in (0x8000, 0x4000, 0x2000, 0x1000)
    )
    version = flags % 8
    if version > 1 or routing:
        return None
    acknowledge = version == 1 and bool(flags & 0x80)
    at += 4 + 4 * (checksum + key + sequence + acknowledge)
    if protocol == 0x880B:
        return ppp_hdlc, at
    if protocol == 0x88BE:
        return ethernet, at + 8 * sequence
    if protocol == 0x22EB:
        frame.require(at, 12)
        return ethernet, at + 12 + 8 * (frame.data[at + 11] % 2)
    if protocol == 0x883E:
        return Network.IPV4, at if frame.number(at, 1) >> 4 == 4 else at + 4
    return ethertype(protocol), at


def _vxlan(_frame: Frame, at: int) -> Next:
    return ethernet, at + 8


def _vxlan_gpe(frame: Frame, at: int) -> Next:
    frame.require(at, 8)
    layers: dict[int, Layer] = {1: Network.IPV4, 2: Network.IPV6, 3: ethernet}
    layer = layers.get(frame.data[at + 3])
    return None if layer is None else (layer, at + 8)


def _geneve(frame: Frame, at: int) -> Next:
    frame.require(at, 8)
    first = frame.data[at]
    if first >= 0x40:
        return None
    return ethertype(frame.number(at + 2, 2)), at + 8 + first % 64 * 4


def _gtpu(frame: Frame, at: int) -> Next:
    frame.require(at, 8)
    flags, message = frame.data[at], frame.data[at + 1]
    if flags & 0xF0 != 0x30 or message != 255:
        return None
    at += 8
    if flags % 8:
        frame.require(at, 4)
        extension = frame.data[at + 3] if flags & 4 else 0
        at += 4
        while extension:
            size = frame.number(at, 1) * 4
            if size == 0:
                raise DecodeFailure(Reason.LINK_MALFORMED)
            frame.require(at, size)
            extension = frame.data[at + size - 1]
            at += size
    return Network.IP, at


def _teredo(frame: Frame, at: int) -> Next:
    if at + 4 <= frame.end and frame.number(at, 2) == 1:
        at += 13 + frame.data[at + 2] + frame.data[at + 3]
    if at + 2 <= frame.end and frame.number(at, 2) == 0:
        at += 8
    return Network.IPV6, at


_PROTOCOLS: dict[int, Layer] = {4: Network.IPV4, 41: Network.IPV6, 137: mpls}
_UDP_TUNNELS: dict[int, Callable[[Frame, int], Next]] = {
    2152: _gtpu,
    3544: _teredo,
    4789: _vxlan,
    4790: _vxlan_gpe,
    6081: _geneve,
}
