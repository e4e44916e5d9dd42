"""Functions compiled to machine code give what numba's code of the same functions gives."""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.capture.kernels.jit import kernel, kernel_part, unrolled_kernel
from gscope.capture.kernels.language.intrinsics import (
    be32,
    bits_float,
    float_bits,
    floor_divide,
    ld8,
    ld64,
    lshr,
    sdiv,
    select,
    srem,
    st64,
    ult,
    wrap_add,
    wrap_mul,
)
from gscope.capture.kernels.language.kinds import Kind
from gscope.capture.kernels.native.machine_code import (
    LoadedCode,
    Optimization,
    binding,
    machine_code,
)
from gscope.capture.kernels.native.module import KernelModule, exported_name
from gscope.capture.kernels.native.source import translated_module
from gscope.capture.kernels.native.values import KernelSyntaxError
from gscope.capture.lfta.runtime_kernels import copy_words

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 7
SOME = (3, LIMIT, 90)
HALF = 0.5


class Pair(NamedTuple):
    low: int
    high: int


@kernel_part
def pair_of(a: int, b: int) -> Pair:
    return Pair(high=max(a, b), low=min(a, b))


@kernel_part
def two(a: int) -> tuple[int, bool]:
    return a & 255, a > LIMIT


@kernel_part
def width(pair: Pair) -> int:
    return (pair.high >> 1) - (pair.low >> 1)


@unrolled_kernel
def repeated(value: int, times: int) -> int:
    total = 0
    for _ in range(times):
        total = wrap_add(total, value)
    return total


@kernel
def records(a: int, b: int) -> int:
    pair = pair_of(a, b)
    low, is_high = two(a)
    return width(pair) + low + is_high + width(Pair(low=3, high=b & 1023))


@kernel
def logic(a: int, b: int) -> int:
    both = a > 0 and b > 0
    some = (a < 0) | (b < 0)
    result = 0
    if both and not some:
        result = 1
    elif some or a == b or not b:
        result = 2 if a != LIMIT else 3
    else:
        return -1
    held = (a in (1, 2, LIMIT)) + 10 * (b not in (1, 2)) + 100 * (0 <= a < 100)
    return result + held + 1000 * (a in SOME) + 2000 * (b not in SOME)


@kernel
def loops(a: int, b: int) -> int:
    total = 0
    for i in range(a & 15):
        if i == 3:
            continue
        for j in range(12, b & 7, -2):
            if j == 6:
                continue
            total += i * j
            if total > 200:
                break
        i = 0
        total += i
    n = a & 31
    while n > 0:
        n -= 3
        if n == 10:
            break
    while True:
        n += 1
        if n > 20:
            return total + n


@kernel
def arithmetic(a: int, b: int) -> int:
    c = wrap_mul(a, b) ^ (a | ~b)
    d = sdiv(a, b) + floor_divide(b, a) // 3 if a else -5
    return wrap_add(lshr(c, 3), d >> 1) ^ ((b & 1023) << 5) - select(ult(a, b), 1, 2)


@kernel
def mixed(a: int, b: int) -> int:
    total: int = False
    total += a > b
    scale = 1 if a & 1 else 2.5
    least = min(a & 255, b & 255, 100)
    sign = -(a > b)
    return int(scale * 2) + total + abs(-(b & 65535)) + least + repeated(a, 3) + bool(b) - sign


@kernel
def is_more(a: int, b: int) -> bool:
    return a > b


@kernel
def assigned_once(a: int, b: int) -> int:
    """Variables that one statement assigns, and that are read beyond the statements after it."""
    total = 0
    for i in range(1 + (a & 7)):
        late = i + (b & 15)
        odd = late & 1
        if odd == 1:
            low, high = late, late * 5
            total = total * 2 + low - high
    total = total * 100 + late * 10 + i
    b &= 31
    n = 0
    while True:
        last = n * 2
        n += 1
        if last > b:
            break
    first = second = last
    return wrap_add(wrap_mul(total, 1000), first + second)


@kernel
def constants(a: int, b: int) -> int:
    """Operations of which one operand, or both, are known."""
    c = sdiv(a, 7) ^ sdiv(b, -1) ^ sdiv(a, 0) ^ floor_divide(b, -7) ^ floor_divide(a, -1)
    d = srem(a, 10) + srem(b, -3) + a // 1000 + (b // 9 & 5) if a > b else 3 * LIMIT - 30 + 2
    return wrap_add(c, wrap_mul(d, 2 * LIMIT - 1))


@kernel
def memory(a: int, b: int) -> int:
    return (ld64(a) ^ be32(a + 3)) + ld8(a + (b & 7))


@kernel
def unused(a: int, b: int) -> None:
    st64(a, b)
    copy_words(a + 8, a, 1)


@kernel
def rises(a: int, b: int) -> int:
    """A variable becomes a float behind a statement that has read it."""
    x: float = a & 7
    y: float = 0
    for _ in range(b & 3):
        y = x + 1
        x = x * HALF
    return int(y * 4)


PURE = [records, logic, loops, arithmetic, mixed, is_more, assigned_once, constants, rises]


def assembly(function: Callable[..., Any], *kinds: Kind) -> str:
    module = KernelModule()
    module.export(function, kinds)
    return str(module)


def native(
    function: Callable[..., Any], *kinds: Kind, optimization: Optimization = Optimization.FULL
) -> Callable[..., int]:
    """Compile a function for these kinds of arguments; it takes and returns numbers."""
    text = assembly(function, *kinds)
    binding.parse_assembly(text).verify()
    code = LoadedCode(machine_code(text, optimization))
    count = sum(2 if kind is Kind.ROWS else 1 for kind in kinds)
    called = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * count)(
        code.address(exported_name(function))
    )

    def call(*arguments: int) -> int:
        assert code is not None
        return int(called(*arguments))

    return call


COMPILED = {each.__name__: native(each, Kind.INT, Kind.INT) for each in (*PURE, memory, unused)}
UNOPTIMISED = {
    each.__name__: native(each, Kind.INT, Kind.INT, optimization=Optimization.NONE) for each in PURE
}
NUMBERS = st.one_of(
    st.integers(-20, 120), st.integers(-(2**63), 2**63 - 1), st.sampled_from([2**63 - 1, -(2**63)])
)


@pytest.mark.parametrize("function", PURE, ids=lambda each: str(each.__name__))
@given(a=NUMBERS, b=NUMBERS)
def test_a_function_gives_what_numba_gives(function: Callable[..., int], a: int, b: int) -> None:
    expected = int(function(a, b))
    assert COMPILED[function.__name__](a, b) == expected
    assert UNOPTIMISED[function.__name__](a, b) == expected


def test_only_variables_that_are_assigned_again_are_in_memory() -> None:
    words = Kind.INT, Kind.INT
    assert "alloca" not in assembly(records, *words)
    assert assembly(logic, *words).count("alloca") == 1
    assert assembly(is_more, *words).count("zeroext i1") == 2


BEFORE_THEY_ARE_ASSIGNED = """
limit = 7


@kernel
def steps(a, b):
    total = 0
    for i in range(a & 7):
        if i > 0:
            total += 3 * late + odd
        late = i + (b & 15)
        odd = late & 1
    return total


@kernel
def shadows(a, b):
    total = 0
    for i in range(a & 7):
        if i > 0:
            total += limit
        limit = (i + (b & 15)) * 0.5
    return int(total * 2)
"""


@pytest.mark.parametrize("name", ["steps", "shadows"])
def test_a_loop_reads_what_its_step_before_has_assigned(name: str) -> None:
    """Numba refuses this, and so no kernel does it."""
    python: dict[str, Any] = {"kernel": lambda function: function}
    exec(BEFORE_THEY_ARE_ASSIGNED, python)
    text = f"from gscope.capture.kernels.jit import kernel\n{BEFORE_THEY_ARE_ASSIGNED}"
    function = getattr(translated_module("before", text), name)
    for level in Optimization:
        called = native(function, Kind.INT, Kind.INT, optimization=level)
        for a, b in itertools.product(range(8), range(16)):
            assert called(a, b) == python[name](a, b)


@kernel
def known(a: int, b: int) -> int:
    return a + (3 * LIMIT - 30 + 2) + sdiv(b, LIMIT)


def test_operations_of_constants_are_done_by_the_compiler() -> None:
    text = assembly(known, Kind.INT, Kind.INT)
    instructions = [line.split(" = ")[-1].strip() for line in text.splitlines() if " = " in line]
    assert instructions == [
        "add nsw i64 %a0, -7",
        "sdiv i64 %a1, 7",
        "add nsw i64 %v1, %v2",
        'call i64 @"known.part"(i64 %a0, i64 %a1)',
    ]


@kernel
def float_steps(a: int, b: int) -> int:
    x, y = float(a), bits_float(b)
    quotient = x / y
    z = x * HALF - abs(y) if quotient > 1 else np.floor(x / 3) + np.ceil(quotient * 0)
    z = max(z, -y) if z == z else np.trunc(x)
    return float_bits(z + (z < y or z != z))


STEPS = native(float_steps, Kind.INT, Kind.INT)


@given(a=NUMBERS, b=st.floats())
def test_floats_are_those_of_numba(a: int, b: float) -> None:
    bits = bits_of(b)
    results = [struct.pack("<q", f(a, bits)) for f in (STEPS, float_steps)]
    one, other = (struct.unpack("<d", each)[0] for each in results)
    assert one == other or (math.isnan(one) and math.isnan(other))
    assert math.copysign(1, one) == math.copysign(1, other) or math.isnan(one)


@kernel
def compared(a: int, b: int) -> int:
    x, y = bits_float(a), bits_float(b)
    held = (x < y) + 2 * (x <= y) + 4 * (x > y) + 8 * (x >= y) + 16 * (x == y) + 32 * (x != y)
    if x:
        held += 64
    if x in (y, HALF):
        held += 128
    return held + 256 * bool(y) + 512 * (not y) + 1024 * (x < y <= HALF)


@kernel
def computed(a: int, b: int, number: int) -> int:
    x, y = bits_float(a), bits_float(b)
    z = x + y
    if number == 1:
        z = -x
    elif number == 2:
        z = x - y
    elif number == 3:
        z = x * y
    elif number == 4:
        z = np.trunc(x)
    elif number == 5:
        z = np.floor(x) + np.ceil(y)
    elif number == 6:
        z = number / (number - 9)
    return float_bits(z)


COMPARED = native(compared, Kind.INT, Kind.INT)
COMPUTED = native(computed, Kind.INT, Kind.INT, Kind.INT)
SPECIAL = (0.0, -0.0, HALF, -2.5, 1e300, math.inf, -math.inf, math.nan)


def bits_of(number: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


@pytest.mark.parametrize("y", SPECIAL)
@pytest.mark.parametrize("x", SPECIAL)
def test_comparisons_of_floats_are_those_of_python_and_numba(x: float, y: float) -> None:
    held = [x < y, x <= y, x > y, x >= y, x == y, x != y, bool(x), x in {y, HALF}]
    held += [bool(y), not y, x < y <= HALF]
    if math.isnan(x):
        held[7] = False  # Python compares identities first
    wanted = sum(int(each) << number for number, each in enumerate(held))
    bits = bits_of(x), bits_of(y)
    assert COMPARED(*bits) == compared(*bits) == wanted


@pytest.mark.parametrize("y", SPECIAL)
@pytest.mark.parametrize("x", SPECIAL)
def test_operations_on_floats_are_those_of_numba(x: float, y: float) -> None:
    for number in range(7):
        arguments = bits_of(x), bits_of(y), number
        one, other = (
            struct.unpack("<d", struct.pack("<q", f(*arguments)))[0] for f in (COMPUTED, computed)
        )
        assert (math.isnan(one) and math.isnan(other)) or bits_of(one) == bits_of(other), number


def test_loads_and_stores_are_at_the_addresses_given() -> None:
    data = np.frombuffer(bytes(range(1, 41)), np.uint8).copy()
    at = data.ctypes.data
    for offset in range(8):
        assert COMPILED["memory"](at + offset, offset) == memory(at + offset, offset)
    assert COMPILED["unused"](at, -3) == 0
    assert list(data[:16].view(np.int64)) == [-3, -3]
    assert list(data[16:20]) == [17, 18, 19, 20]


@kernel
def rows(table: Any, words: Any, n: int) -> int:
    row = table[n]
    row[1] += 5
    table[n, 0] = words[2] - 1
    words[n] *= 2
    return int(row[0] + table[0, 1])


def test_arrays_are_read_and_written_in_place() -> None:
    called = native(rows, Kind.ROWS, Kind.WORDS, Kind.INT)
    tables = [np.arange(12, dtype=np.int64).reshape(4, 3) for _ in range(2)]
    words = [np.arange(50, 55, dtype=np.int64) for _ in range(2)]
    got = called(tables[0].ctypes.data, tables[0].strides[0], words[0].ctypes.data, 2)
    assert got == rows(tables[1], words[1], 2) == 51 + 1
    assert np.array_equal(tables[0], tables[1])
    assert np.array_equal(words[0], words[1])


@kernel
def reads_text(a: int) -> int:
    return len("abc") + a


@kernel
def walks_items(a: int) -> int:
    total = 0
    for each in (1, 2, a):
        total += each
    return total


@kernel
def picks_number(a: int) -> int:
    return a or 3


@kernel
def raises(a: int) -> int:
    if a:
        raise ValueError
    return a


@kernel
def is_two_kinds(a: int) -> int:
    pair = a
    if a:
        pair = (a, a)  # type: ignore[assignment]
    return pair


@kernel
def steps_by(a: int) -> int:
    total = 0
    for i in range(0, 10, a):
        total += i
    return total


@kernel
def stands_still(a: int) -> int:
    for i in range(0, 10, 0):
        a += i
    return a


@kernel
def inverts_truth(a: int) -> int:
    """Python's ~True is -2, and numba's is False."""
    return a + ~(a > 1)


REFUSED = [
    inverts_truth,
    reads_text,
    walks_items,
    picks_number,
    raises,
    is_two_kinds,
    steps_by,
    stands_still,
]


@pytest.mark.parametrize("function", REFUSED, ids=lambda each: str(each.__name__))
def test_what_is_not_supported_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(KernelSyntaxError):
        KernelModule().export(function, [Kind.INT])
