"""Intrinsics against what Python says the same operation is."""

from __future__ import annotations

import math
import struct

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language import intrinsics as i

INT64 = st.integers(-(2**63), 2**63 - 1)
MASK = 2**64 - 1


def signed(value: int) -> int:
    value &= MASK
    return value - 2**64 if value >> 63 else value


@kernel
def loads(a: int) -> tuple[int, int, int, int, int, int, int]:
    return (i.ld8(a), i.ld16(a), i.ld32(a), i.ld64(a), i.be16(a), i.be32(a), i.be64(a))


@settings(deadline=None)  # the first call compiles
@given(st.binary(min_size=9, max_size=9))
def test_loads_read_unaligned_bytes_in_both_orders(data: bytes) -> None:
    buffer = np.frombuffer(data, np.uint8)
    word = data[1:]
    expected = tuple(
        struct.unpack_from(code, word)[0] for code in ("<B", "<H", "<I", "<q", ">H", ">I", ">q")
    )
    assert loads(buffer.ctypes.data + 1) == expected


@kernel
def stores(a: int, value: int) -> None:
    i.st8(a, value)
    i.st16(a + 1, value)
    i.st32(a + 3, value)
    i.st64(a + 7, value)
    i.stf64(a + 15, i.ldf64(a + 7))


@settings(deadline=None)
@given(INT64)
def test_stores_write_the_low_bytes_and_no_more(value: int) -> None:
    buffer = np.full(32, 0xEE, np.uint8)
    stores(buffer.ctypes.data, value)
    word = struct.pack("<q", value)
    written = buffer.tobytes()
    assert written[:15] == word[:1] + word[:2] + word[:4] + word
    stored = struct.unpack("<d", written[15:23])[0]
    expected = struct.unpack("<d", word)[0]
    assert stored == expected or (math.isnan(stored) and math.isnan(expected))
    assert written[23:] == b"\xee" * 9


@kernel
def arithmetic(a: int, b: int) -> tuple[int, int, int, int, bool, bool, int, int]:
    return (
        i.sdiv(a, b),
        i.srem(a, b),
        i.floor_divide(a, b),
        i.lshr(a, b & 63),
        i.ult(a, b),
        i.ule(a, b),
        i.fold_product(a, b),
        i.udiv(a, b),
    )


@settings(deadline=None)
@given(INT64, INT64 | st.integers(-3, 3))
def test_arithmetic_is_that_of_c(a: int, b: int) -> None:
    quotient, remainder = 0, 0
    if b:
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        remainder = a - b * quotient
    product = (a & MASK) * (b & MASK)
    assert arithmetic(a, b) == (
        signed(quotient),
        remainder,
        signed(a // b) if b else 0,
        signed((a & MASK) >> (b & 63)),
        (a & MASK) < (b & MASK),
        (a & MASK) <= (b & MASK),
        signed(product ^ (product >> 64)),
        signed((a & MASK) // (b & MASK)) if b else 0,
    )


@kernel
def wrapping(a: int, b: int) -> tuple[int, int, int, int, int, int, int]:
    return (
        i.wrap_add(a, b),
        i.wrap_sub(a, b),
        i.wrap_mul(a, b),
        i.wrap_neg(a),
        i.wrap_abs(a),
        i.shift_left(a, b),
        i.shift_right(a, b),
    )


@settings(deadline=None)
@given(INT64 | st.just(-(2**63)), INT64 | st.integers(-3, 70))
def test_wrapping_arithmetic_is_python_s_modulo_64_bits(a: int, b: int) -> None:
    is_inside = 0 <= b < 64
    assert wrapping(a, b) == (
        *(signed(value) for value in (a + b, a - b, a * b, -a, abs(a))),
        signed(a << b) if is_inside else 0,
        a >> (b if is_inside else 63),
    )


@kernel
def bits(a: int) -> tuple[int, int, int, int, int, int, int]:
    return (
        i.bswap16(a),
        i.bswap32(a),
        i.bswap64(a),
        i.popcount(a),
        i.leading_zeros(a),
        i.trailing_zeros(a),
        i.select(a < 0, a, 7),
    )


@settings(deadline=None)
@given(INT64 | st.sampled_from([0, -1, 1]))
def test_bit_operations_agree_with_python(a: int) -> None:
    word = struct.pack("<q", a)
    unsigned = a & MASK
    assert bits(a) == (
        int.from_bytes(word[:2], "big"),
        int.from_bytes(word[:4], "big"),
        signed(int.from_bytes(word, "big")),
        unsigned.bit_count(),
        64 - unsigned.bit_length(),
        (unsigned & -unsigned).bit_length() - 1 if a else 64,
        a if a < 0 else 7,
    )


@kernel
def copy_and_prefetch(target: int, source: int, size: int) -> None:
    i.prefetch(0)
    i.copy_bytes(target, source, size)


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_copy_bytes_copies_exactly_its_size(data: bytes) -> None:
    source = np.frombuffer(data + b"\x55", np.uint8)
    target = np.zeros(64, np.uint8)
    copy_and_prefetch(target.ctypes.data, source.ctypes.data, len(data))
    assert target.tobytes() == data + bytes(64 - len(data))
