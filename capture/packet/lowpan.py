"""IEEE 802.15.4 frames: the position and kind of 6LoWPAN in them (RFC 4944 section 5.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import ld8, ld16
from gscope.capture.packet.compressed_ipv6 import NO_ADDRESS, SHORT_ADDRESS, expand_ipv6
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.decode_states import IPV6, NOTHING, ODD
from gscope.capture.packet.record import NO_LINK
from gscope.capture.packet.workspace import SLOT_FRAME_BYTES, take_slot

if TYPE_CHECKING:
    from gscope.capture.packet.link_headers import Step

_TRUNCATED = int(Reason.LINK_TRUNCATED)
_MALFORMED = int(Reason.LINK_MALFORMED)
_FRAGMENT = int(Reason.LOWPAN_FRAGMENT)
_UNSUPPORTED = int(Reason.LOWPAN_UNSUPPORTED)

_DATA, _SECURED, _ONE_PAN = 1, 0x08, 0x40
_RESERVED_MODE = 1

_UNCOMPRESSED, _HC1, _BROADCAST = 0x41, 0x42, 0x50
_COMPRESSED_BITS, _FIRST_FRAGMENT_BITS, _FRAGMENT_BITS = 0b011, 0b11000, 0b11100


@kernel
def after_802154(at: int, end: int, wire_end: int, fcs_bytes: int, workspace: int) -> Step:
    """Return the step after the header of an unsecured data frame of version 2003 or 2006.

    ``wire_end`` is the end of the frame on the wire, including its checksum of ``fcs_bytes``.
    """
    end = max(at, min(end, wire_end - fcs_bytes))
    wire_end = max(end, wire_end - fcs_bytes)
    if at + 3 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    control = ld16(at)
    version = (control >> 12) & 3
    if control & 7 != _DATA or control & _SECURED or version > 1:
        return NOTHING, at, end, 0, NO_LINK
    destination, source = (control >> 10) & 3, (control >> 14) & 3
    if destination == _RESERVED_MODE or source == _RESERVED_MODE:
        return ODD, at, end, _MALFORMED, NO_LINK
    here = at + 3
    destination_at = here + 2
    if destination != NO_ADDRESS:
        here += 4 if destination == SHORT_ADDRESS else 10
    if source != NO_ADDRESS and not (control & _ONE_PAN and destination != NO_ADDRESS):
        here += 2
    source_at = here
    if source != NO_ADDRESS:
        here += 2 if source == SHORT_ADDRESS else 8
    if here + 1 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    dispatch = ld8(here)
    if dispatch == _UNCOMPRESSED:
        return IPV6, here + 1, end, 0, NO_LINK
    if dispatch >> 5 == _COMPRESSED_BITS:
        # A longer frame than any radio sends would not fit.
        if wire_end - at > SLOT_FRAME_BYTES:
            return ODD, at, end, _MALFORMED, NO_LINK
        slot = take_slot(workspace)
        return expand_ipv6(
            here, end, wire_end, source, source_at, destination, destination_at, slot
        )
    if dispatch >> 3 in (_FIRST_FRAGMENT_BITS, _FRAGMENT_BITS):
        return ODD, at, end, _FRAGMENT, NO_LINK
    if dispatch in (_HC1, _BROADCAST):
        return ODD, at, end, _UNSUPPORTED, NO_LINK
    return NOTHING, at, end, 0, NO_LINK
