"""The slow dissector's rare link types; see ``dissect``."""

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
    ppp,
)

if TYPE_CHECKING:
    from gscope.capture.packet.dissector.link_headers import Layer

_CISCO_TYPES = (0x0800, 0x0806, 0x86DD, 0x8847, 0x8848)


def frame_relay(frame: Frame, at: int) -> Next:
    """Decode a Q.922 address of two to four octets, then RFC 2427 or Cisco's type."""
    size = next((n for n in range(1, 5) if frame.number(at + n - 1, 1) % 2), 0)
    if size < 2:
        raise DecodeFailure(Reason.LINK_MALFORMED)
    at += size
    begin = frame.number(at, 2)
    if begin >> 8 != 3:
        return (ethertype(begin), at + 2) if begin in _CISCO_TYPES else None
    at += 1
    if frame.number(at, 1) == 0:
        at += 1
    nlpid = frame.number(at, 1)
    at += 1
    if nlpid == 0x80:
        organization, protocol = frame.number(at, 3), frame.number(at + 3, 2)
        if organization == 0:
            return ethertype(protocol), at + 5
        return (ethernet, at + 5) if organization == 0x80C2 and protocol in (1, 7) else None
    layers: dict[int, Layer] = {0xCC: Network.IPV4, 0x8E: Network.IPV6, 0xCF: ppp}
    layer = layers.get(nlpid)
    return None if layer is None else (layer, at)


def arcnet(frame: Frame, at: int) -> Next:
    """Decode ARCNET as Linux captures it."""
    protocol = frame.number(at + 4, 1)
    at += 5
    old = {240: Network.IPV4, 241: Network.ARP}
    new = {212: Network.IPV4, 213: Network.ARP, 196: Network.IPV6}
    if protocol in old:
        return old[protocol], at
    if protocol not in new:
        return None
    frame.require(at, 3)
    flag = frame.data[at]
    return None if flag and flag % 2 == 0 else (new[protocol], at + 3)


def juniper_ethernet(frame: Frame, at: int) -> Next:
    """Decode Ethernet after Juniper's header."""
    frame.require(at, 4)
    if frame.data[at : at + 3] != b"MGC":
        raise DecodeFailure(Reason.LINK_MALFORMED)
    flags = frame.data[at + 3]
    if flags & 2:
        return None
    at += 4
    if flags & 128:
        extensions = frame.number(at, 2) + 2
        frame.require(at, extensions)
        at += extensions
    return ethernet, at


def ipnet(frame: Frame, at: int) -> Next:
    """Decode Solaris' header for the observation of IP."""
    frame.require(at, 24)
    layer = {2: Network.IPV4, 26: Network.IPV6}.get(frame.data[at + 1])
    return None if layer is None else (layer, at + 24)


def infiniband(frame: Frame, at: int) -> Next:
    """Decode IP over InfiniBand."""
    frame.require(at, 44)
    return ethertype(frame.number(at + 40, 2)), at + 44
