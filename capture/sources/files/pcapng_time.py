"""Timestamps of pcapng: 64-bit counts of a unit that each interface chooses."""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel_part, native_kernel
from gscope.capture.kernels.language.intrinsics import udiv
from gscope.capture.kernels.language.kinds import Kind, RecordKind
from gscope.queries.int64 import MAX_TIME_NS

_MULTIPLY, _DIVIDE, _BINARY = 0, 1, 2
_NS_PER_S = 1_000_000_000
_HALF_OF_32_BITS = 2**31


def time_scale(resolution: int, offset_s: int) -> tuple[int, int, int]:
    """Return kind, factor and offset for ``scaled_time``, which turns counts into nanoseconds.

    Args:
        resolution: the option if_tsresol: the unit as a negative power of 10 seconds, or of 2 with
            the high bit set.
        offset_s: the option if_tsoffset: seconds to add, limited to what nanoseconds can represent.
    """
    offset_ns = max(-MAX_TIME_NS, min(offset_s * _NS_PER_S, MAX_TIME_NS))
    exponent = resolution & 0x7F
    if resolution & 0x80:
        return _BINARY, exponent, offset_ns
    if exponent <= 9:
        return _MULTIPLY, 10 ** (9 - exponent), offset_ns
    # With smaller units 64 bits hold a few nanoseconds at most, which count as 0.
    return _DIVIDE, 10 ** (exponent - 9) if exponent <= 27 else 0, offset_ns


@native_kernel(*(Kind.INT,) * 5, result=RecordKind(None, (Kind.INT, Kind.BOOL)))
def scaled_time(high: int, low: int, kind: int, factor: int, offset_ns: int) -> tuple[int, bool]:
    """Return nanoseconds since 1970 for a count of ``high * 2**32 + low``, and if they are exact.

    Rounds down. A time beyond ``MAX_TIME_NS`` becomes ``MAX_TIME_NS``, which is not exact.
    Everything is int64: the parts are computed so that no product reaches 2**63.
    """
    time_ns, fits = 0, True
    if kind == _MULTIPLY:
        count = (high << 32) | low
        fits = high < _HALF_OF_32_BITS and count <= MAX_TIME_NS // factor
        time_ns = count * factor
    elif kind == _DIVIDE:
        if factor > 0:
            time_ns = udiv((high << 32) | low, factor)
    else:
        time_ns, fits = _binary_time(high, low, factor)
    if not fits or (offset_ns > 0 and time_ns > MAX_TIME_NS - offset_ns):
        return MAX_TIME_NS, False
    return time_ns + offset_ns, True


@kernel_part
def _binary_time(high: int, low: int, exponent: int) -> tuple[int, bool]:
    """Return count * 10**9 / 2**exponent, computed by halves of 32 bits, and whether it fits."""
    if exponent < 32:
        seconds = (high << (32 - exponent)) | (low >> exponent)
        fraction_ns = ((low & ((1 << exponent) - 1)) * _NS_PER_S) >> exponent
        # high << 32 - exponent may reach 2**63 only for an exponent of 0.
        fits = high >> 31 == 0 or exponent > 0
        fits = fits and seconds <= (MAX_TIME_NS - fraction_ns) // _NS_PER_S
        return seconds * _NS_PER_S + fraction_ns, fits
    whole_ns = high * _NS_PER_S + ((low * _NS_PER_S) >> 32)
    return whole_ns >> min(exponent - 32, 63), True
