"""The slow dissector's 6LoWPAN over IEEE 802.15.4; see ``dissect``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.dissector.link_headers import DecodeFailure, Frame, Network
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.capture.packet.dissector.link_headers import Next

_LONGEST_FRAME = 2047
_ADDRESS_SIZES = {0: 0, 2: 2, 3: 8}
_LINK_LOCAL = bytes.fromhex("fe80000000000000")
_SHORT = bytes.fromhex("000000fffe00")
_PORT_SIZES = {0: (2, 2), 1: (2, 1), 2: (1, 2)}


def lowpan_with_checksum(frame: Frame, at: int) -> Next:
    """Read a frame as ``lowpan`` does, followed by a checksum of two octets."""
    return _frame(frame, at, 2)


def lowpan(frame: Frame, at: int) -> Next:
    """Read IEEE 802.15.4 with IPv6, compressed or not."""
    return _frame(frame, at, 0)


def _frame(frame: Frame, at: int, checksum: int) -> Next:
    frame.wire_end -= checksum
    frame.end = max(at, min(frame.end, frame.wire_end))
    frame.wire_end = max(frame.end, frame.wire_end)
    begin = at
    frame.require(at, 3)
    control = frame.number(at, 2, "little")
    if control % 8 != 1 or control & 8 or control >> 12 & 3 > 1:
        return None
    modes = control >> 10 & 3, control >> 14
    if 1 in modes:
        raise DecodeFailure(Reason.LINK_MALFORMED)
    sizes = [_ADDRESS_SIZES[mode] for mode in modes]
    pans = [2 if size else 0 for size in sizes]
    if control & 0x40 and all(sizes):
        pans[1] = 0
    at += 3
    places = at + pans[0], at + sum(pans) + sizes[0]
    at += sum(sizes) + sum(pans)
    dispatch = frame.number(at, 1)
    if dispatch == 0x41:
        return Network.IPV6, at + 1
    if dispatch & 0xE0 == 0x60:
        if frame.wire_end - begin > _LONGEST_FRAME:
            raise DecodeFailure(Reason.LINK_MALFORMED)
        destination, source = (
            frame.data[place : place + size][::-1]
            for place, size in zip(places, sizes, strict=True)
        )
        frame.data = _Header(frame, at).expanded(source, destination)
        frame.end = len(frame.data)
        return Network.IPV6, 0
    if dispatch & 0xF8 in (0xC0, 0xE0):
        raise DecodeFailure(Reason.LOWPAN_FRAGMENT)
    if dispatch in (0x42, 0x50):
        raise DecodeFailure(Reason.LOWPAN_UNSUPPORTED)
    return None


@dataclass(slots=True)
class _Header:
    """A compressed header, read from beginning to end."""

    frame: Frame
    at: int

    def take(self, size: int) -> bytes:
        self.frame.require(self.at, size)
        self.at += size
        return self.frame.data[self.at - size : self.at]

    def expanded(self, link_source: bytes, link_destination: bytes) -> bytes:
        """Return the expanded packet; link-layer addresses have their first octet first."""
        flags, modes = self.take(2)
        source_mode, destination_mode, is_group = modes >> 4 & 7, modes & 7, bool(modes & 8)
        if destination_mode > 4 if is_group else destination_mode == 4:
            raise DecodeFailure(Reason.LINK_MALFORMED)
        if source_mode > 4 or destination_mode > 3:
            raise DecodeFailure(Reason.LOWPAN_CONTEXT)
        if source_mode == 3 and not link_source:
            raise DecodeFailure(Reason.LINK_MALFORMED)
        if destination_mode == 3 and not is_group and not link_destination:
            raise DecodeFailure(Reason.LINK_MALFORMED)
        if modes & 0x80:
            self.take(1)
        first = 6 << 28 | self._class_and_flow(flags >> 3 & 3)
        protocol = None if flags & 4 else self.take(1)[0]
        limit = {1: 1, 2: 64, 3: 255}.get(flags & 3) or self.take(1)[0]
        source = self._address(source_mode, link_source)
        if is_group:
            destination = self._group(destination_mode)
        else:
            destination = self._address(destination_mode, link_destination)
        transport = b""
        if protocol is None:
            protocol, transport = 17, self._udp()
        behind = self.frame.data[self.at : self.frame.end]
        length = len(transport) + self.frame.wire_end - self.at
        head = first.to_bytes(4) + length.to_bytes(2) + bytes([protocol, limit])
        return head + source + destination + transport + behind

    def _class_and_flow(self, form: int) -> int:
        octets = self.take((4, 3, 1, 0)[form])
        if not octets:
            return 0
        ecn, dscp = octets[0] >> 6, octets[0] & 63
        if form == 1:
            return ecn << 20 | int.from_bytes(octets) & 0xFFFFF
        flow = int.from_bytes(octets) & 0xFFFFF if form == 0 else 0
        return (dscp << 2 | ecn) << 20 | flow

    def _address(self, mode: int, link: bytes) -> bytes:
        if mode == 0:
            return self.take(16)
        if mode == 4:
            return bytes(16)
        if mode == 1:
            return _LINK_LOCAL + self.take(8)
        short = self.take(2) if mode == 2 else link
        if len(short) == 2:
            return _LINK_LOCAL + _SHORT + short
        return _LINK_LOCAL + bytes([short[0] ^ 2]) + short[1:]

    def _group(self, mode: int) -> bytes:
        octets = self.take((16, 6, 4, 1)[mode])
        if mode == 0:
            return octets
        if mode == 3:
            return b"\xff\x02" + bytes(13) + octets
        return b"\xff" + octets[:1] + octets[1:].rjust(14, b"\0")

    def _udp(self) -> bytes:
        form = self.take(1)[0]
        if form & 0xF8 != 0xF0:
            raise DecodeFailure(Reason.LOWPAN_UNSUPPORTED)
        if form & 3 == 3:
            both = self.take(1)[0]
            ports = 0xF0B0 + both // 16, 0xF0B0 + both % 16
        else:
            found = [int.from_bytes(self.take(size)) for size in _PORT_SIZES[form & 3]]
            sizes = _PORT_SIZES[form & 3]
            ports = (
                found[0] + (0xF000 if sizes[0] == 1 else 0),
                found[1] + (0xF000 if sizes[1] == 1 else 0),
            )
        checksum = bytes(2) if form & 4 else self.take(2)
        length = 8 + self.frame.wire_end - self.at
        return ports[0].to_bytes(2) + ports[1].to_bytes(2) + length.to_bytes(2) + checksum
