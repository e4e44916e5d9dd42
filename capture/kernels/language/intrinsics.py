"""Operations that numba lacks: loads and stores at addresses, unsigned operations, C division.

Everything is int64, loads are zero-extended, addresses are int64 too. numba turns int64 with uint64
into float64, so kernels must never hold a uint64: write constants from 2**63 on as negative
numbers, shift right with ``lshr`` and compare addresses or hashes with ``ult``. Loads and stores
need no alignment. None of these functions can be called outside a kernel.

They are only declared here: ``capture/kernels/language/intrinsic_code.py`` has their code, which
both compilers use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, cast

from gscope.capture.kernels.language.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    Unary = Callable[[int], int]
    Binary = Callable[[int, int], int]
    Predicate = Callable[[int, int], bool]
    Store = Callable[[int, int], None]

_BOOL, _INT, _FLOAT, _NOTHING = Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.NOTHING


class Intrinsic:
    """An operation of kernels.

    Args:
        name: its name, which is that of its code.
        result: kind of its result.
        parameters: kinds of its parameters.
    """

    def __init__(self, name: str, result: Kind, *parameters: Kind) -> None:
        self.name = name
        self.result = result
        self.parameters = parameters

    def __call__(self, *_arguments: Any) -> NoReturn:
        """Raise: there is no code outside kernels."""
        message = f"only kernels can call {self.name}"
        raise TypeError(message)


class External:
    """A function of the C library, for kernels that ``native_kernel`` compiles.

    Args:
        name: its name.
        result_bits: width of its result, a signed integer.
        parameter_bits: width of each parameter.
    """

    result = Kind.INT

    def __init__(self, name: str, result_bits: int, *parameter_bits: int) -> None:
        self.name = name
        self.result_bits = result_bits
        self.parameter_bits = parameter_bits
        self.parameters = (Kind.INT,) * len(parameter_bits)

    def __call__(self, *_arguments: int) -> int:
        """Raise: there is no code outside kernels."""
        message = f"only kernels can call {self.name}"
        raise TypeError(message)


def _unary(name: str) -> Unary:
    return cast("Unary", Intrinsic(name, _INT, _INT))


def _binary(name: str) -> Binary:
    return cast("Binary", Intrinsic(name, _INT, _INT, _INT))


def _store(name: str) -> Store:
    return cast("Store", Intrinsic(name, _NOTHING, _INT, _INT))


ld8, ld16, ld32, ld64 = _unary("ld8"), _unary("ld16"), _unary("ld32"), _unary("ld64")
be16, be32, be64 = _unary("be16"), _unary("be32"), _unary("be64")
st8, st16, st32, st64 = _store("st8"), _store("st16"), _store("st32"), _store("st64")

ldf64 = cast("Callable[[int], float]", Intrinsic("ldf64", _FLOAT, _INT))
stf64 = cast("Callable[[int, float], None]", Intrinsic("stf64", _NOTHING, _INT, _FLOAT))

ld64_alone = _unary("ld64_alone")
"""Load a word that was stored alone a moment ago, as the words of a slot are. A vector load of
several would have to wait until all those stores have left the core; an unordered atomic load is a
plain one that LLVM does not merge."""

ld32_acquire = _unary("ld32_acquire")
"""Load a word that another writer set last, after what it guards; the address must be aligned to 4.
"""
st32_release = _store("st32_release")
"""Store a word after all earlier loads and stores; the address must be aligned to 4."""

bswap16, bswap32, bswap64 = _unary("bswap16"), _unary("bswap32"), _unary("bswap64")

float_bits = cast("Callable[[float], int]", Intrinsic("float_bits", _INT, _FLOAT))
"""The bits of a double."""
bits_float = cast("Callable[[int], float]", Intrinsic("bits_float", _FLOAT, _INT))
"""The double with the given bits."""
float_remainder = cast(
    "Callable[[float, float], float]", Intrinsic("float_remainder", _FLOAT, _FLOAT, _FLOAT)
)
"""C's fmod, which numba lacks."""

lshr = _binary("lshr")
"""Logical shift right; the shift must be below 64."""

# Arithmetic of queries wraps; numba's own is marked "never overflows".
wrap_add = _binary("wrap_add")
"""The sum modulo 2**64."""
wrap_sub = _binary("wrap_sub")
"""The difference modulo 2**64."""
wrap_mul = _binary("wrap_mul")
"""The product modulo 2**64."""
wrap_neg = _unary("wrap_neg")
"""The negative modulo 2**64: that of the least number is itself."""
wrap_abs = _unary("wrap_abs")
"""The absolute value modulo 2**64: that of the least number is itself."""

shift_left = _binary("shift_left")
"""Shift left; 0 for a count of 64 and above, and for a negative one."""
shift_right = _binary("shift_right")
"""Shift right, keeping the sign; the sign alone for a count of 64 and above, and for a negative
one."""

popcount = _unary("popcount")
leading_zeros = _unary("leading_zeros")
trailing_zeros = _unary("trailing_zeros")

ult = cast("Predicate", Intrinsic("ult", _BOOL, _INT, _INT))
ule = cast("Predicate", Intrinsic("ule", _BOOL, _INT, _INT))

select = cast("Callable[[bool, int, int], int]", Intrinsic("select", _INT, _BOOL, _INT, _INT))
"""``select(c, a, b)`` is a if c else b, without a branch; both are evaluated."""

sdiv = _binary("sdiv")
"""Division truncating towards zero; 0 by zero (the caller decides about NULL), INT64_MIN / -1
wraps."""
srem = _binary("srem")
"""Remainder with the sign of the dividend; 0 by zero."""
floor_divide = _binary("floor_divide")
"""Division rounding down; 0 by zero (the caller decides about NULL), INT64_MIN / -1 wraps."""

udiv = _binary("udiv")
"""Division of unsigned numbers; 0 by zero."""

fold_product = _binary("fold_product")
"""High xor low half of the unsigned 128-bit product: the mixing step of wyhash."""

prefetch = cast("Callable[[int], None]", Intrinsic("prefetch", _NOTHING, _INT))
"""Prefetch the cache line at an address; harmless for any address."""

copy_bytes = cast(
    "Callable[[int, int, int], None]", Intrinsic("copy_bytes", _NOTHING, _INT, _INT, _INT)
)
"""``copy_bytes(target, source, size)``: the two must not overlap."""

address_of = cast("Callable[[Any], int]", Intrinsic("address_of", _INT, Kind.WORDS))
"""The address of an array's elements."""

call_at = cast("Callable[[int, tuple[Any, ...]], int]", Intrinsic("call_at", _INT, _INT, _INT))
"""``call_at(address, arguments)`` calls a native kernel (``capture/kernels/native/``), for kernels
that ``native_kernel`` compiles.

Arguments in a tuple within ``arguments`` are passed one by one. Their number and order are not
checked.
"""
