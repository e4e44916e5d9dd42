"""The LLVM code of intrinsics, by their names; imported only where a kernel is compiled.

``capture/kernels/language/intrinsics.py`` declares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

if TYPE_CHECKING:
    from collections.abc import Callable

    Build = Callable[..., Any]

_I8, _I16, _I32, _I64, _I128 = (ir.IntType(bits) for bits in (8, 16, 32, 64, 128))
_F64 = ir.DoubleType()
_I1 = ir.IntType(1)


def _load(width: Any, *, big_endian: bool = False) -> Build:
    pointer = width.as_pointer()

    def build(builder: Any, address: Any) -> Any:
        value = builder.load(builder.inttoptr(address, pointer), align=1)
        if big_endian:
            value = builder.bswap(value)
        return value if width is _I64 else builder.zext(value, _I64)

    return build


def _store(width: Any) -> Build:
    pointer = width.as_pointer()

    def build(builder: Any, address: Any, value: Any) -> None:
        narrow = value if width is _I64 else builder.trunc(value, width)
        builder.store(narrow, builder.inttoptr(address, pointer), align=1)

    return build


def _load_float(builder: Any, address: Any) -> Any:
    return builder.load(builder.inttoptr(address, _F64.as_pointer()), align=1)


def _store_float(builder: Any, address: Any, value: Any) -> None:
    builder.store(value, builder.inttoptr(address, _F64.as_pointer()), align=1)


def _load_alone(builder: Any, address: Any) -> Any:
    return builder.load_atomic(builder.inttoptr(address, _I64.as_pointer()), "unordered", 8)


def _load_acquire(builder: Any, address: Any) -> Any:
    pointer = builder.inttoptr(address, _I32.as_pointer())
    return builder.zext(builder.load_atomic(pointer, "acquire", 4), _I64)


def _store_release(builder: Any, address: Any, value: Any) -> None:
    pointer = builder.inttoptr(address, _I32.as_pointer())
    builder.store_atomic(builder.trunc(value, _I32), pointer, "release", 4)


def _swap(width: Any) -> Build:
    def build(builder: Any, value: Any) -> Any:
        if width is _I64:
            return builder.bswap(value)
        return builder.zext(builder.bswap(builder.trunc(value, width)), _I64)

    return build


def _absolute(builder: Any, a: Any) -> Any:
    negative = builder.icmp_signed("<", a, _I64(0))
    return builder.select(negative, builder.sub(_I64(0), a), a)


def _shift(builder: Any, value: Any, count: Any, inside: Any, outside: Any) -> Any:
    is_inside = builder.icmp_unsigned("<", count, _I64(64))
    safe = builder.and_(count, _I64(63))
    return builder.select(is_inside, inside(value, safe), outside)


def _shift_left(builder: Any, value: Any, count: Any) -> Any:
    return _shift(builder, value, count, builder.shl, _I64(0))


def _shift_right(builder: Any, value: Any, count: Any) -> Any:
    sign = builder.ashr(value, _I64(63))
    return _shift(builder, value, count, builder.ashr, sign)


def _is_divisor(b: Any) -> bool:
    """Return whether it is known that no division by ``b`` traps."""
    return isinstance(b, ir.Constant) and b.constant not in (0, -1)


def _divide(*, remainder: bool) -> Build:
    def build(builder: Any, a: Any, b: Any) -> Any:
        if _is_divisor(b):
            return (builder.srem if remainder else builder.sdiv)(a, b)
        # x86 traps on division by zero and on INT64_MIN / -1.
        is_zero = builder.icmp_signed("==", b, _I64(0))
        is_minus_one = builder.icmp_signed("==", b, _I64(-1))
        safe = builder.select(builder.or_(is_zero, is_minus_one), _I64(1), b)
        if remainder:
            return builder.srem(a, safe)
        quotient = builder.select(is_minus_one, builder.neg(a), builder.sdiv(a, safe))
        return builder.select(is_zero, _I64(0), quotient)

    return build


def floor_quotient(builder: Any, a: Any, b: Any) -> Any:
    """Build a division rounding down; 0 by zero."""
    if _is_divisor(b):
        return _floor_quotient(builder, a, b)
    is_zero = builder.icmp_signed("==", b, _I64(0))
    is_minus_one = builder.icmp_signed("==", b, _I64(-1))
    safe = builder.select(builder.or_(is_zero, is_minus_one), _I64(1), b)
    quotient = _floor_quotient(builder, a, safe)
    quotient = builder.select(is_minus_one, builder.sub(_I64(0), a), quotient)
    return builder.select(is_zero, _I64(0), quotient)


def _floor_quotient(builder: Any, a: Any, b: Any) -> Any:
    rest = builder.srem(a, b)
    is_broken = builder.icmp_signed("!=", rest, _I64(0))
    is_negative = builder.icmp_signed("<", builder.xor(rest, b), _I64(0))
    below = builder.zext(builder.and_(is_broken, is_negative), _I64)
    return builder.sub(builder.sdiv(a, b), below)


def _divide_unsigned(builder: Any, a: Any, b: Any) -> Any:
    is_zero = builder.icmp_signed("==", b, _I64(0))
    return builder.select(is_zero, _I64(0), builder.udiv(a, builder.select(is_zero, _I64(1), b)))


def _fold_product(builder: Any, a: Any, b: Any) -> Any:
    product = builder.mul(builder.zext(a, _I128), builder.zext(b, _I128))
    high = builder.trunc(builder.lshr(product, _I128(64)), _I64)
    return builder.xor(builder.trunc(product, _I64), high)


def _prefetch(builder: Any, address: Any) -> None:
    pointer = _I8.as_pointer()
    signature = ir.FunctionType(ir.VoidType(), [pointer, _I32, _I32, _I32])
    function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], signature)
    # Read, keep in all levels of the cache, data.
    builder.call(function, [builder.inttoptr(address, _I8.as_pointer()), _I32(0), _I32(3), _I32(1)])


def _copy(builder: Any, target: Any, source: Any, size: Any) -> None:
    pointer = _I8.as_pointer()
    function = builder.module.declare_intrinsic("llvm.memcpy", [pointer, pointer, _I64])
    places = [builder.inttoptr(address, pointer) for address in (target, source)]
    builder.call(function, [*places, size, _I1(0)])


def address_of_array(builder: Any, pointer: Any) -> Any:
    """Build the address to which a pointer points."""
    return builder.ptrtoint(pointer, _I64)


BUILD: dict[str, Build] = {
    **{f"ld{of.width}": _load(of) for of in (_I8, _I16, _I32, _I64)},
    **{f"be{of.width}": _load(of, big_endian=True) for of in (_I16, _I32, _I64)},
    **{f"st{of.width}": _store(of) for of in (_I8, _I16, _I32, _I64)},
    **{f"bswap{of.width}": _swap(of) for of in (_I16, _I32, _I64)},
    "ldf64": _load_float,
    "stf64": _store_float,
    "ld64_alone": _load_alone,
    "ld32_acquire": _load_acquire,
    "st32_release": _store_release,
    "float_bits": lambda builder, value: builder.bitcast(value, _I64),
    "bits_float": lambda builder, value: builder.bitcast(value, _F64),
    "float_remainder": lambda builder, a, b: builder.frem(a, b),
    "lshr": lambda builder, value, shift: builder.lshr(value, shift),
    # numba marks its own +, - and * of signed integers "never overflows" (nsw), and LLVM then draws
    # conclusions from known ranges that hold for no product that wraps.
    "wrap_add": lambda builder, a, b: builder.add(a, b),
    "wrap_sub": lambda builder, a, b: builder.sub(a, b),
    "wrap_mul": lambda builder, a, b: builder.mul(a, b),
    "wrap_neg": lambda builder, a: builder.sub(_I64(0), a),
    "wrap_abs": _absolute,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "popcount": lambda builder, value: builder.ctpop(value),
    "leading_zeros": lambda builder, value: builder.ctlz(value, _I1(0)),
    "trailing_zeros": lambda builder, value: builder.cttz(value, _I1(0)),
    "ult": lambda builder, a, b: builder.icmp_unsigned("<", a, b),
    "ule": lambda builder, a, b: builder.icmp_unsigned("<=", a, b),
    "select": lambda builder, condition, a, b: builder.select(condition, a, b),
    "sdiv": _divide(remainder=False),
    "srem": _divide(remainder=True),
    "floor_divide": floor_quotient,
    "udiv": _divide_unsigned,
    "fold_product": _fold_product,
    "prefetch": _prefetch,
    "copy_bytes": _copy,
}
"""For each intrinsic, what builds its code from LLVM values; the result is None if it has none."""
