"""What kernels call besides their own parts: functions of Python, numpy and C, and intrinsics.

Intrinsics are those of ``capture/kernels/language/intrinsics.py``; both compilers build the same
code for them.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from gscope.capture.kernels.language.intrinsic_code import BUILD
from gscope.capture.kernels.language.intrinsics import External, Intrinsic
from gscope.capture.kernels.language.kinds import AnyKind, Kind
from gscope.capture.kernels.native.source import unsupported
from gscope.capture.kernels.native.values import united
from gscope.records import dataclass

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Sequence

_I64, _F64 = ir.IntType(64), ir.DoubleType()


@dataclass(frozen=True, slots=True)
class Function:
    """A function of Python or numpy.

    Attributes:
        kind: gives the kind of the result for the kinds of the arguments.
        build: builds its code from LLVM values, which are converted to the result's kind.
    """

    kind: Callable[[Sequence[AnyKind]], AnyKind]
    build: Callable[[Any, Sequence[Any]], Any]


def intrinsic_of(called: Any, call: ast.Call) -> Intrinsic | External:
    """Return the intrinsic, or the function of the C library, that a call calls.

    Raises:
        KernelSyntaxError: it calls something else.
    """
    if not isinstance(called, Intrinsic | External):
        raise unsupported(call)
    return called


def build_intrinsic(called: Intrinsic, builder: Any, words: Sequence[Any]) -> Any:
    """Build a call of an intrinsic from LLVM values, which have the kinds of its parameters."""
    # The address of an array is its value.
    return words[0] if called.parameters == (Kind.WORDS,) else BUILD[called.name](builder, *words)


def build_external(called: External, builder: Any, words: Sequence[Any]) -> Any:
    """Build a call of a function of the C library from words of 64 bits; return one."""
    result = ir.IntType(called.result_bits)
    parameters = [ir.IntType(bits) for bits in called.parameter_bits]
    function = builder.module.declare(called.name, ir.FunctionType(result, parameters))
    given = [
        word if of == word.type else builder.trunc(word, of)
        for word, of in zip(words, parameters, strict=True)
    ]
    made = builder.call(function, given)
    return made if result == _I64 else builder.sext(made, _I64)


def build_call_at(builder: Any, address: Any, words: Sequence[Any]) -> Any:
    """Build a call of the machine code at an address, with words of 64 bits."""
    signature = ir.FunctionType(_I64, [_I64] * len(words))
    return builder.call(builder.inttoptr(address, signature.as_pointer()), words)


def _first(kinds: Sequence[AnyKind]) -> AnyKind:
    return kinds[0]


def _all(kinds: Sequence[AnyKind]) -> AnyKind:
    return functools.reduce(united, kinds)


def _extreme(operator: str) -> Callable[[Any, Sequence[Any]], Any]:
    def build(builder: Any, values: Sequence[Any]) -> Any:
        best = values[0]
        for value in values[1:]:
            compare = builder.fcmp_ordered if value.type == _F64 else builder.icmp_signed
            best = builder.select(compare(operator, value, best), value, best)
        return best

    return build


def _absolute(builder: Any, values: Sequence[Any]) -> Any:
    (value,) = values
    if value.type == _F64:
        return _llvm("llvm.fabs")(builder, values)
    zero = value.type(0)
    negative = builder.sub(zero, value, flags=["nsw"])
    return builder.select(builder.icmp_signed("<", value, zero), negative, value)


def _llvm(name: str) -> Callable[[Any, Sequence[Any]], Any]:
    def build(builder: Any, values: Sequence[Any]) -> Any:
        return builder.call(builder.module.declare_intrinsic(name, [_F64]), values)

    return build


def _conversion(kind: Kind) -> Function:
    return Function(lambda _kinds: kind, lambda _builder, values: values[0])


def _rounding(name: str) -> Function:
    return Function(lambda _kinds: Kind.FLOAT, _llvm(name))


FUNCTIONS: dict[Any, Function] = {
    min: Function(_all, _extreme("<")),
    max: Function(_all, _extreme(">")),
    abs: Function(_first, _absolute),
    bool: _conversion(Kind.BOOL),
    int: _conversion(Kind.INT),
    np.int64: _conversion(Kind.INT),
    float: _conversion(Kind.FLOAT),
    np.floor: _rounding("llvm.floor"),
    np.ceil: _rounding("llvm.ceil"),
    np.trunc: _rounding("llvm.trunc"),
}
