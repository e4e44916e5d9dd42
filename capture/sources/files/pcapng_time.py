"""Time stamps of pcapng: 64-bit counts of units that each interface chooses."""

from __future__ import annotations

import numpy as np

from gscope.capture.kernels.jit import kernel
from gscope.queries.int64 import MAX_TIME_NS

_MULTIPLY, _DIVIDE, _BINARY = 0, 1, 2
_NS_PER_S = 1_000_000_000


def time_scale(resolution: int, offset_s: int) -> tuple[int, int, int]:
    """What turns counts into nanoseconds: kind, factor and offset, as ``scaled_time`` takes them.

    Args:
        resolution: the option if_tsresol: units a second, as a negative power of 10, or with the high bit
            set of 2.
        offset_s: the option if_tsoffset: seconds to be added, held at what nanoseconds can tell.
    """
    offset_ns = max(-MAX_TIME_NS, min(offset_s * _NS_PER_S, MAX_TIME_NS))
    exponent = resolution & 0x7F
    if resolution & 0x80:
        return _BINARY, exponent, offset_ns
    if exponent <= 9:
        return _MULTIPLY, 10 ** (9 - exponent), offset_ns
    # With still smaller units 64 bits hold a few nanoseconds at most: 0 stands for that.
    return _DIVIDE, 10 ** (exponent - 9) if exponent <= 27 else 0, offset_ns


@kernel
def scaled_time(high: int, low: int, kind: int, factor: int, offset_ns: int) -> tuple[int, bool]:
    """Nanoseconds since 1970 of the unsigned 64-bit count ``high * 2**32 + low``, and whether they are right.

    Rounds down. A time beyond ``MAX_TIME_NS`` becomes ``MAX_TIME_NS`` and is not right. Everything is int64:
    the parts are computed so that no product reaches 2**63.
    """
    time_ns, fits = 0, True
    if kind == _MULTIPLY:
        count = (high << 32) | low
        fits = high < 2**31 and count <= MAX_TIME_NS // factor
        time_ns = count * factor
    elif kind == _DIVIDE:
        if factor > 0:
            time_ns = int(np.int64(np.uint64((high << 32) | low) // np.uint64(factor)))
    else:
        time_ns, fits = _binary_time(high, low, factor)
    if not fits or (offset_ns > 0 and time_ns > MAX_TIME_NS - offset_ns):
        return MAX_TIME_NS, False
    return time_ns + offset_ns, True


@kernel
def _binary_time(high: int, low: int, exponent: int) -> tuple[int, bool]:
    """The count as seconds of 2**exponent units: count * 10**9 / 2**exponent, by halves of 32 bits."""
    if exponent < 32:
        seconds = (high << (32 - exponent)) | (low >> exponent)
        fraction_ns = ((low & ((1 << exponent) - 1)) * _NS_PER_S) >> exponent
        # high << 32 - exponent may reach 2**63 only for an exponent of 0.
        fits = high >> 31 == 0 or exponent > 0
        fits = fits and seconds <= (MAX_TIME_NS - fraction_ns) // _NS_PER_S
        return seconds * _NS_PER_S + fraction_ns, fits
    whole_ns = high * _NS_PER_S + ((low * _NS_PER_S) >> 32)
    return whole_ns >> min(exponent - 32, 63), True
