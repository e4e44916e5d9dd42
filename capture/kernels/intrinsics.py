"""Operations that numba lacks: loads and stores at addresses, unsigned operations, C division.

Everything is int64, loads are zero-extended, addresses are int64 too. numba turns int64 with uint64
into float64, so kernels must never hold a uint64: write constants from 2**63 on as negative
numbers, shift right with ``lshr`` and compare addresses or hashes with ``ult``. Loads and stores
need no alignment. None of these functions can be called outside a kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from llvmlite import ir

from gscope.capture.kernels.jit import cgutils, intrinsic, types

if TYPE_CHECKING:
    from collections.abc import Callable

    Unary = Callable[[int], int]
    Binary = Callable[[int, int], int]
    Predicate = Callable[[int, int], bool]
    Store = Callable[[int, int], None]

_I8, _I16, _I32, _I64, _I128 = (ir.IntType(bits) for bits in (8, 16, 32, 64, 128))
_F64 = ir.DoubleType()
_I1 = ir.IntType(1)


def _function(build: Callable[..., Any], result: Any, *arguments: Any) -> Any:
    """Return an intrinsic of fixed types, with code from ``build``; result None means none."""
    signature = result(*arguments)

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        made = build(builder, *values)
        return context.get_dummy_value() if made is None else made

    # numba counts the parameters of the typing function, so there is one for each arity.
    def typing0(_context: Any) -> Any:
        return signature, codegen

    def typing1(_context: Any, a: Any) -> Any:  # noqa: ARG001
        return signature, codegen

    def typing2(_context: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
        return signature, codegen

    def typing3(_context: Any, a: Any, b: Any, c: Any) -> Any:  # noqa: ARG001
        return signature, codegen

    return intrinsic((typing0, typing1, typing2, typing3)[len(arguments)])


def _unary(build: Callable[..., Any]) -> Unary:
    return cast("Unary", _function(build, types.int64, types.int64))


def _binary(build: Callable[..., Any]) -> Binary:
    return cast("Binary", _function(build, types.int64, types.int64, types.int64))


def _load(width: Any, *, big_endian: bool) -> Unary:
    def build(builder: Any, address: Any) -> Any:
        value = builder.load(builder.inttoptr(address, width.as_pointer()))
        value.align = 1
        if big_endian:
            value = builder.bswap(value)
        return value if width is _I64 else builder.zext(value, _I64)

    return _unary(build)


def _store(width: Any) -> Store:
    def build(builder: Any, address: Any, value: Any) -> None:
        narrow = value if width is _I64 else builder.trunc(value, width)
        builder.store(narrow, builder.inttoptr(address, width.as_pointer())).align = 1

    return cast("Store", _function(build, types.void, types.int64, types.int64))


ld8 = _load(_I8, big_endian=False)
ld16 = _load(_I16, big_endian=False)
ld32 = _load(_I32, big_endian=False)
ld64 = _load(_I64, big_endian=False)
be16 = _load(_I16, big_endian=True)
be32 = _load(_I32, big_endian=True)
be64 = _load(_I64, big_endian=True)

st8 = _store(_I8)
st16 = _store(_I16)
st32 = _store(_I32)
st64 = _store(_I64)


def _load_float(builder: Any, address: Any) -> Any:
    value = builder.load(builder.inttoptr(address, _F64.as_pointer()))
    value.align = 1
    return value


def _store_float(builder: Any, address: Any, value: Any) -> None:
    builder.store(value, builder.inttoptr(address, _F64.as_pointer())).align = 1


ldf64 = cast("Callable[[int], float]", _function(_load_float, types.float64, types.int64))
stf64 = cast(
    "Callable[[int, float], None]", _function(_store_float, types.void, types.int64, types.float64)
)


def _swap(width: Any) -> Unary:
    def build(builder: Any, value: Any) -> Any:
        if width is _I64:
            return builder.bswap(value)
        return builder.zext(builder.bswap(builder.trunc(value, width)), _I64)

    return _unary(build)


bswap16 = _swap(_I16)
bswap32 = _swap(_I32)
bswap64 = _swap(_I64)

lshr = _binary(lambda builder, value, shift: builder.lshr(value, shift))
"""Logical shift right; the shift must be below 64."""

# numba marks its own +, - and * of signed integers "never overflows" (nsw), and LLVM then draws
# conclusions from known ranges that hold for no product that wraps. Arithmetic of queries wraps.
wrap_add = _binary(lambda builder, a, b: builder.add(a, b))
"""The sum modulo 2**64."""
wrap_sub = _binary(lambda builder, a, b: builder.sub(a, b))
"""The difference modulo 2**64."""
wrap_mul = _binary(lambda builder, a, b: builder.mul(a, b))
"""The product modulo 2**64."""
wrap_neg = _unary(lambda builder, a: builder.sub(_I64(0), a))
"""The negative modulo 2**64: that of the least number is itself."""
wrap_abs = _unary(
    lambda builder, a: builder.select(
        builder.icmp_signed("<", a, _I64(0)), builder.sub(_I64(0), a), a
    )
)
"""The absolute value modulo 2**64: that of the least number is itself."""


def _shift(builder: Any, value: Any, count: Any, inside: Any, outside: Any) -> Any:
    is_inside = builder.icmp_unsigned("<", count, _I64(64))
    safe = builder.and_(count, _I64(63))
    return builder.select(is_inside, inside(value, safe), outside)


def _shift_left(builder: Any, value: Any, count: Any) -> Any:
    return _shift(builder, value, count, builder.shl, _I64(0))


def _shift_right(builder: Any, value: Any, count: Any) -> Any:
    sign = builder.ashr(value, _I64(63))
    return _shift(builder, value, count, builder.ashr, sign)


shift_left = _binary(_shift_left)
"""Shift left; 0 for a count of 64 and above, and for a negative one."""
shift_right = _binary(_shift_right)
"""Shift right, keeping the sign; the sign alone for a count of 64 and above, and for a negative
one."""


def _count(name: str) -> Unary:
    def build(builder: Any, value: Any) -> Any:
        if name == "llvm.ctpop":
            return builder.ctpop(value)
        make = builder.ctlz if name == "llvm.ctlz" else builder.cttz
        return make(value, _I1(0))

    return _unary(build)


popcount = _count("llvm.ctpop")
leading_zeros = _count("llvm.ctlz")
trailing_zeros = _count("llvm.cttz")


def _compare(operator: str) -> Predicate:
    def build(builder: Any, a: Any, b: Any) -> Any:
        return builder.icmp_unsigned(operator, a, b)

    return cast("Predicate", _function(build, types.boolean, types.int64, types.int64))


ult = _compare("<")
ule = _compare("<=")


def _select(builder: Any, condition: Any, a: Any, b: Any) -> Any:
    return builder.select(condition, a, b)


select = cast(
    "Callable[[bool, int, int], int]",
    _function(_select, types.int64, types.boolean, types.int64, types.int64),
)
"""``select(c, a, b)`` is a if c else b, without a branch; both are evaluated."""


def _divide(*, remainder: bool) -> Binary:
    def build(builder: Any, a: Any, b: Any) -> Any:
        # x86 traps on division by zero and on INT64_MIN / -1; all of this folds away for a
        # constant.
        is_zero = builder.icmp_signed("==", b, _I64(0))
        is_minus_one = builder.icmp_signed("==", b, _I64(-1))
        safe = builder.select(builder.or_(is_zero, is_minus_one), _I64(1), b)
        if remainder:
            return builder.srem(a, safe)
        quotient = builder.select(is_minus_one, builder.neg(a), builder.sdiv(a, safe))
        return builder.select(is_zero, _I64(0), quotient)

    return _binary(build)


sdiv = _divide(remainder=False)
"""Division truncating towards zero; 0 by zero (the caller decides about NULL), INT64_MIN / -1
wraps."""
srem = _divide(remainder=True)
"""Remainder with the sign of the dividend; 0 by zero."""


def floor_quotient(builder: Any, a: Any, b: Any) -> Any:
    """Build a division rounding down; 0 by zero."""
    is_zero = builder.icmp_signed("==", b, _I64(0))
    is_minus_one = builder.icmp_signed("==", b, _I64(-1))
    safe = builder.select(builder.or_(is_zero, is_minus_one), _I64(1), b)
    rest = builder.srem(a, safe)
    is_broken = builder.icmp_signed("!=", rest, _I64(0))
    is_negative = builder.icmp_signed("<", builder.xor(rest, safe), _I64(0))
    below = builder.zext(builder.and_(is_broken, is_negative), _I64)
    quotient = builder.sub(builder.sdiv(a, safe), below)
    quotient = builder.select(is_minus_one, builder.sub(_I64(0), a), quotient)
    return builder.select(is_zero, _I64(0), quotient)


floor_divide = _binary(floor_quotient)
"""Division rounding down; 0 by zero (the caller decides about NULL), INT64_MIN / -1 wraps."""


def _fold_product(builder: Any, a: Any, b: Any) -> Any:
    product = builder.mul(builder.zext(a, _I128), builder.zext(b, _I128))
    high = builder.trunc(builder.lshr(product, _I128(64)), _I64)
    return builder.xor(builder.trunc(product, _I64), high)


fold_product = _binary(_fold_product)
"""High xor low half of the unsigned 128-bit product: the mixing step of wyhash."""


def _prefetch(builder: Any, address: Any) -> None:
    signature = ir.FunctionType(ir.VoidType(), [_I8.as_pointer(), _I32, _I32, _I32])
    function = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0i8")
    # Read, keep in all levels of the cache, data.
    builder.call(function, [builder.inttoptr(address, _I8.as_pointer()), _I32(0), _I32(3), _I32(1)])


prefetch = cast("Callable[[int], None]", _function(_prefetch, types.void, types.int64))
"""Prefetch the cache line at an address; harmless for any address."""


def _copy(builder: Any, target: Any, source: Any, size: Any) -> None:
    pointers = [builder.inttoptr(address, _I8.as_pointer()) for address in (target, source)]
    cgutils.raw_memcpy(builder, *pointers, size, 1)


copy_bytes = cast(
    "Callable[[int, int, int], None]",
    _function(_copy, types.void, types.int64, types.int64, types.int64),
)
"""``copy_bytes(target, source, size)``: the two must not overlap."""


def _address_of(_context: Any, array: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, values[0])
        return builder.ptrtoint(made.data, _I64)

    return types.int64(array), codegen


address_of = cast("Callable[[Any], int]", intrinsic(_address_of))
"""The address of an array's elements."""


def _load_acquire(builder: Any, address: Any) -> Any:
    pointer = builder.inttoptr(address, _I32.as_pointer())
    return builder.zext(builder.load_atomic(pointer, "acquire", 4), _I64)


def _store_release(builder: Any, address: Any, value: Any) -> None:
    pointer = builder.inttoptr(address, _I32.as_pointer())
    builder.store_atomic(builder.trunc(value, _I32), pointer, "release", 4)


ld32_acquire = cast("Unary", _function(_load_acquire, types.int64, types.int64))
"""Load a word that another writer set last, after what it guards; the address must be aligned to 4.
"""
st32_release = cast("Store", _function(_store_release, types.void, types.int64, types.int64))
"""Store a word after all earlier loads and stores; the address must be aligned to 4."""


def _leaves(kind: Any) -> list[Any]:
    """Return the types in a tuple, those of tuples within it one by one."""
    if isinstance(kind, types.BaseTuple):
        return [leaf for part in kind.types for leaf in _leaves(part)]
    return [types.unliteral(kind)]


def _leaf_values(builder: Any, kind: Any, value: Any) -> list[Any]:
    if isinstance(kind, types.BaseTuple):
        parts = zip(kind.types, cgutils.unpack_tuple(builder, value), strict=True)
        return [leaf for part, inside in parts for leaf in _leaf_values(builder, part, inside)]
    return [value]


def _words(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """Return what an argument is to a native kernel: the address of an array, or a number."""
    if not isinstance(kind, types.Array):
        return [context.cast(builder, value, kind, types.int64)]
    array = context.make_array(kind)(context, builder, value)
    address = builder.ptrtoint(array.data, _I64)
    return [address] if kind.ndim == 1 else [address, builder.extract_value(array.strides, 0)]


def _call_at(_context: Any, entry: Any, arguments: Any) -> Any:
    kinds = _leaves(arguments)

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        parts = zip(kinds, _leaf_values(builder, arguments, values[1]), strict=True)
        words = [word for part in parts for word in _words(context, builder, *part)]
        function = ir.FunctionType(_I64, [_I64] * len(words))
        return builder.call(builder.inttoptr(values[0], function.as_pointer()), words)

    return types.int64(entry, arguments), codegen


call_at = cast("Callable[[int, tuple[Any, ...]], int]", intrinsic(_call_at))
"""``call_at(address, arguments)`` calls a native kernel (``capture/kernels/native/``).

Arguments in a tuple within ``arguments`` are passed one by one. An array is passed by its address,
followed by the bytes from one row to the next if it has two dimensions. Their number and order are
not checked.
"""
