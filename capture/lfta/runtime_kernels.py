"""Kernels for catalog functions that need more than an expression.

Strings are passed as address and length.
"""

from __future__ import annotations

import math

import numpy as np

from gscope.capture.kernels.jit import kernel, unrolled_kernel
from gscope.capture.kernels.language.intrinsics import (
    bits_float,
    bswap64,
    copy_bytes,
    ld8,
    ld32,
    ld64,
    ld64_alone,
    lshr,
    st32,
    st64,
    ult,
)
from gscope.queries.int64 import MAX_INT, MIN_INT

INFINITY = math.inf
NAN = math.nan


@kernel
def fits_int(value: float) -> bool:
    """Return whether a double, truncated, is an integer of 64 bits; NaN and infinities are not."""
    return -9223372036854775808.0 <= value < 9223372036854775808.0


@kernel
def truncated(value: float) -> int:
    """Return a double truncated to an integer; 0 if it does not fit."""
    return int(value) if fits_int(value) else 0


@kernel
def round_half_away(value: float) -> float:
    """Return the nearest whole number, halves rounded away from zero; a zero is positive."""
    whole = np.trunc(value)
    if abs(value - whole) >= 0.5:
        whole += 1.0 if value > 0.0 else -1.0
    return float(whole + 0.0)


@kernel
def byte_matches(offset: int, byte: int, text: int, length: int) -> bool:
    """Return whether the byte at ``offset`` exists and is ``byte``."""
    return 0 <= offset < length and ld8(text + offset) == byte


@kernel
def same_at(a: int, b: int, length: int) -> bool:
    """Return whether ``length`` bytes at two addresses agree."""
    at = 0
    while at + 8 <= length:
        if ld64(a + at) != ld64(b + at):
            return False
        at += 8
    while at < length:
        if ld8(a + at) != ld8(b + at):
            return False
        at += 1
    return True


@kernel
def starts_with(text: int, length: int, needle: int, needle_length: int) -> bool:
    """Return whether ``text`` begins with ``needle``."""
    return length >= needle_length and same_at(text, needle, needle_length)


@kernel
def same_bytes(a: int, length_a: int, b: int, length_b: int) -> bool:
    """Return whether two strings are equal."""
    return length_a == length_b and same_at(a, b, length_a)


@kernel
def compare_bytes(a: int, length_a: int, b: int, length_b: int) -> int:
    """Return a number below, equal to or above 0 as ``a`` is before, equal to or after ``b``.

    Bytes are compared as unsigned numbers.
    """
    shorter = min(length_a, length_b)
    for at in range(shorter):
        difference = ld8(a + at) - ld8(b + at)
        if difference != 0:
            return difference
    return length_a - length_b


@kernel
def contains(text: int, length: int, needle: int, needle_length: int) -> bool:
    """Return whether ``needle`` occurs in ``text``."""
    if needle_length == 0:
        return True
    first = ld8(needle)
    for at in range(length - needle_length + 1):
        if ld8(text + at) == first and same_at(text + at, needle, needle_length):
            return True
    return False


@kernel
def float_key(value: float) -> float:
    """Return the double that represents all that compare equal: one zero, one NaN."""
    return NAN if value != value else value + 0.0


@kernel
def store_address(target: int, high: int, low: int) -> None:
    """Store 128 bits in network order."""
    st64(target, bswap64(high))
    st64(target + 8, bswap64(low))


@kernel
def family_bits(high: int, low: int, length: int) -> int:
    """Return the bits of 128 that a prefix length covers, by the address family; -1 if invalid."""
    if high == 0 and lshr(low, 32) == 0xFFFF:
        return 96 + length if 0 <= length <= 32 else -1
    return length if 0 <= length <= 128 else -1


@kernel
def leading_ones(bits: int) -> int:
    """Return a word that begins with ``bits`` ones; none below 1, all above 63."""
    if bits <= 0:
        return 0
    return -1 if bits >= 64 else -1 << (64 - bits)


@kernel
def in_subnet(high: int, low: int, network_high: int, network_low: int, bits: int) -> bool:
    """Return whether the first ``bits`` agree; IPv4 addresses are in no network of IPv6."""
    if bits < 96 and high == 0 and lshr(low, 32) == 0xFFFF:
        return False
    high_differs = (high ^ network_high) & leading_ones(bits)
    low_differs = (low ^ network_low) & leading_ones(bits - 64)
    return high_differs == 0 and low_differs == 0


@kernel
def append_bytes(end: int, heap: int, text: int, length: int) -> None:
    """Append a string after the one whose end is at ``end``; store its end in the next word."""
    begin = ld32(end)
    copy_bytes(heap + begin, text, length)
    st32(end + 4, begin + length)


@unrolled_kernel
def swap_words(a: int, b: int, words: int) -> None:
    """Exchange two runs of 64-bit words."""
    for at in range(0, 8 * words, 8):
        word = ld64_alone(a + at)
        st64(a + at, ld64_alone(b + at))
        st64(b + at, word)


@unrolled_kernel
def copy_words(target: int, source: int, words: int) -> None:
    """Copy a run of 64-bit words; the two must not overlap."""
    for at in range(0, 8 * words, 8):
        st64(target + at, ld64_alone(source + at))


@kernel
def wide_less(high_a: int, low_a: int, high_b: int, low_b: int) -> bool:
    """Return whether the first of two unsigned 128-bit numbers is less."""
    return ult(high_a, high_b) or (high_a == high_b and ult(low_a, low_b))


@kernel
def float_less(bits_a: int, bits_b: int) -> bool:
    """Return whether the double with the bits ``bits_a`` is less; NaN is above all numbers."""
    a, b = bits_float(bits_a), bits_float(bits_b)
    return a < b or (a == a and b != b)


@kernel
def first_epoch(epoch: int, tags: int) -> int:
    """Return the epoch of tag 1 if tags begin at ``epoch``; a quarter is for time stepping back."""
    back = tags // 4
    return min(max(epoch, MIN_INT + back) - back, MAX_INT - tags)
