"""IEEE 802.11 data frames, with or without a radiotap header."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import be16, ld8, ld16, ld32
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.decode_states import LLC, NOTHING, ODD
from gscope.capture.packet.record import NOWHERE

if TYPE_CHECKING:
    from gscope.capture.packet.link_headers import Step

_TRUNCATED = int(Reason.LINK_TRUNCATED)
_MALFORMED = int(Reason.LINK_MALFORMED)

_TO_DS, _FROM_DS, _MORE_FRAGMENTS, _PROTECTED, _ORDER = 0x01, 0x02, 0x04, 0x40, 0x80
_HAS_QOS, _NO_DATA = 0x8, 0x4
_AMSDU = 0x80

_RADIOTAP_TSFT, _RADIOTAP_FLAGS, _RADIOTAP_MORE = 1, 2, 1 << 31
_RADIOTAP_HAS_FCS, _RADIOTAP_IS_PADDED = 0x10, 0x20


@kernel
def mac_link(destination: int, source: int) -> int:
    """Return a link word of two MAC offsets; an offset that does not fit is omitted."""
    if destination >= NOWHERE or destination < 0:
        destination = NOWHERE
    if source >= NOWHERE or source < 0:
        source = NOWHERE
    return -1 << 32 | source << 16 | destination


@kernel
def after_radiotap(base: int, at: int, end: int) -> Step:
    """Skip a radiotap header, which says whether the frame ends with a checksum."""
    if at + 8 > end:
        return ODD, at, end, _TRUNCATED, -1
    length = ld16(at + 2)
    if length < 8:
        return ODD, at, end, _MALFORMED, -1
    if at + length > end:
        return ODD, at, end, _TRUNCATED, -1
    frame = at + length
    fields = at + 8
    present = ld32(at + 4)
    word = present
    while word & _RADIOTAP_MORE and fields + 4 <= frame:
        word = ld32(fields)
        fields += 4
    if present & _RADIOTAP_TSFT:
        fields = at + ((fields - at + 7) & ~7) + 8
    flags = 0
    if present & _RADIOTAP_FLAGS and fields + 1 <= frame:
        flags = ld8(fields)
    if flags & _RADIOTAP_HAS_FCS:
        end = max(frame, end - 4)
    is_padded = 1 if flags & _RADIOTAP_IS_PADDED else 0
    return after_wlan(base, frame, end, is_padded)


@kernel
def after_wlan(base: int, at: int, end: int, is_padded: int) -> Step:
    """Decode an 802.11 frame at ``at``, if it is an unprotected, unfragmented data frame.

    ``is_padded`` is whether the header is padded to a multiple of 4 bytes.
    """
    if at + 24 > end:
        return ODD, at, end, _TRUNCATED, -1
    control, flags = ld8(at), ld8(at + 1)
    subtype = control >> 4
    is_data = control & 0x0F == 0x08
    length = 24
    if flags & _TO_DS and flags & _FROM_DS:
        length = 30
        link = mac_link(at + 16 - base, at + 24 - base)
    elif flags & _TO_DS:
        link = mac_link(at + 16 - base, at + 10 - base)
    elif flags & _FROM_DS:
        link = mac_link(at + 4 - base, at + 16 - base)
    else:
        link = mac_link(at + 4 - base, at + 10 - base)
    if not is_data:
        return NOTHING, at, end, 0, -1
    is_aggregate = False
    if subtype & _HAS_QOS:
        if at + length + 2 > end:
            return ODD, at, end, _TRUNCATED, -1
        is_aggregate = ld8(at + length) & _AMSDU != 0
        length += 6 if flags & _ORDER else 2
    if is_padded:
        length = (length + 3) & ~3
    if at + length > end:
        return ODD, at, end, _TRUNCATED, -1
    if subtype & _NO_DATA or flags & (_PROTECTED | _MORE_FRAGMENTS):
        return NOTHING, at, end, 0, link
    if is_aggregate:
        return _first_subframe(base, at + length, end)
    return LLC, at + length, end, 0, link


@kernel
def _first_subframe(base: int, at: int, end: int) -> Step:
    if at + 14 > end:
        return ODD, at, end, _TRUNCATED, -1
    return LLC, at + 14, min(end, at + 14 + be16(at + 12)), 0, mac_link(at - base, at + 6 - base)
