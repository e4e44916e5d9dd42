"""Decompression of LZO1X, which ``nfcapd -z`` and ``nfdump -J 1`` use, as a kernel.

Written after the description of the format in the documentation of the Linux kernel
(``Documentation/staging/lzo.rst``). The data are a sequence of instructions: copy bytes of the
input (*literals*), or bytes of the output at a distance behind its end (a *match*). The two lowest
bits of the distance of a match say how many literals follow it, 0 to 3; this number, or 4 after a
long run of literals, determines what an instruction below 16 means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.kernels.jit import kernel, kernel_part
from gscope.capture.kernels.language.intrinsics import address_of, ld8, ld16, st8

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_AFTER_RUN = 4
"""The state after a run of literals that was not part of a match."""
_FIRST_RUN = 17
"""A first byte above it is a run of literals, longer by so much."""
_FAR = 16384
"""Least distance of instructions 16 to 31; this distance itself is the end of the data."""
_AFTER_RUN_DISTANCE = 2049
_MAX_LENGTH = 1 << 30


@kernel
def unpack_lzo(data: NDArray[np.uint8], out: NDArray[np.uint8]) -> int:
    """Decompress ``data`` into ``out``; return the bytes written.

    -1 if ``data`` is damaged or if room lacks.
    """
    source = address_of(data)
    end = source + data.size
    begin = address_of(out)
    to, limit = begin, begin + out.size
    if end - source < 3:
        return -1
    state = 0
    if ld8(source) > _FIRST_RUN:
        literals = ld8(source) - _FIRST_RUN
        source += 1
        if source + literals > end or to + literals > limit:
            return -1
        for _ in range(literals):
            st8(to, ld8(source))
            source, to = source + 1, to + 1
        state = min(literals, _AFTER_RUN)
    # Each instruction reads at most three bytes, apart from lengths and literals.
    while source < end:
        code = ld8(source)
        source += 1
        literals = code & 3
        if code >= 64:
            if source >= end:
                return -1
            low_bits = (code >> 2) & 7
            distance = (ld8(source) << 3) + low_bits + 1
            length = (code >> 5) + 1
            source += 1
        elif code >= 16:
            source, length = _length(source, end, code, 31 if code >= 32 else 7)
            length += 2
            if source + 2 > end:
                return -1
            word = ld16(source)
            source += 2
            literals = word & 3
            distance = (word >> 2) + 1
            if code < 32:
                distance += ((code & 8) << 11) + _FAR - 1
                if distance == _FAR:
                    return to - begin if source == end and length == 3 else -1
        elif state == 0:
            source, literals = _length(source, end, code, 15)
            literals += 3
            if source + literals > end or to + literals > limit:
                return -1
            for _ in range(literals):
                st8(to, ld8(source))
                source, to = source + 1, to + 1
            state = _AFTER_RUN
            continue
        else:
            if source >= end:
                return -1
            is_after_run = state == _AFTER_RUN
            distance = (ld8(source) << 2) + (code >> 2)
            distance += _AFTER_RUN_DISTANCE if is_after_run else 1
            length = 3 if is_after_run else 2
            source += 1
        if distance > to - begin or to + length + literals > limit or source + literals > end:
            return -1
        for _ in range(length):
            st8(to, ld8(to - distance))
            to += 1
        for _ in range(literals):
            st8(to, ld8(source))
            source, to = source + 1, to + 1
        state = literals
    return -1


@kernel_part
def _length(source: int, end: int, code: int, mask: int) -> tuple[int, int]:
    """Return the address behind the length of an instruction, and the length.

    It is in the bits ``mask`` of the instruction, or, if these are 0, in the bytes that follow:
    255 for each zero, and the first other one. A length without end is larger than any room.
    """
    length = code & mask
    if length:
        return source, length
    length = mask
    while source < end and ld8(source) == 0:
        length += 255
        source += 1
    if source >= end:
        return source, _MAX_LENGTH
    return source + 1, length + ld8(source)
