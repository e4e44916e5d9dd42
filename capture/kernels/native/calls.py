"""What kernels call besides their own parts: functions of Python and numpy, and intrinsics.

Intrinsics are those of ``capture/kernels/intrinsics.py``. Each has a typing function, which gives
its result and the code that builds it with LLVM; both compilers use it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from gscope.capture.kernels.jit import types
from gscope.capture.kernels.native.kinds import AnyKind, Kind, llvm_types, united
from gscope.capture.kernels.native.source import unsupported

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Sequence

_F64 = ir.DoubleType()
_NUMBA = {
    Kind.BOOL: types.boolean,
    Kind.INT: types.int64,
    Kind.FLOAT: types.float64,
    Kind.NOTHING: types.void,
}
_KINDS = {of: kind for kind, of in _NUMBA.items()}


@dataclass(frozen=True, slots=True)
class Function:
    """A function of Python or numpy.

    Attributes:
        kind: gives the kind of the result for the kinds of the arguments.
        build: builds its code from LLVM values, which are converted to the result's kind.
    """

    kind: Callable[[Sequence[AnyKind]], AnyKind]
    build: Callable[[Any, Sequence[Any]], Any]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """An intrinsic for arguments of certain kinds.

    Attributes:
        parameters: kinds of its parameters.
        result: kind of its result.
        build: builds its code from LLVM values.
    """

    parameters: tuple[Kind, ...]
    result: Kind
    build: Callable[[Any, Sequence[Any]], Any]


class _Context:
    """What the code of intrinsics asks of numba's context."""

    @staticmethod
    def get_value_type(of: Any) -> Any:
        (found,) = llvm_types(_KINDS[of])
        return found

    @staticmethod
    def get_dummy_value() -> None:
        return None


@functools.cache
def _typed(intrinsic: Any, kinds: tuple[Kind, ...]) -> Intrinsic:
    signature, codegen = intrinsic._defn(None, *(_NUMBA[kind] for kind in kinds))

    def build(builder: Any, values: Sequence[Any]) -> Any:
        return codegen(_Context, builder, signature, values)

    parameters = tuple(_KINDS[of] for of in signature.args)
    return Intrinsic(parameters, _KINDS[signature.return_type], build)


_ADDRESS = Intrinsic((Kind.WORDS,), Kind.INT, lambda _builder, values: values[0])
"""The address of an array, which is its value."""


def intrinsic_of(called: Any, kinds: Sequence[AnyKind | None], call: ast.Call) -> Intrinsic:
    """Return the intrinsic that a call with arguments of these kinds calls.

    Raises:
        KernelSyntaxError: it calls something else.
    """
    if not hasattr(called, "_defn"):
        raise unsupported(call)
    if list(kinds) == [Kind.WORDS]:
        return _ADDRESS
    return _typed(called, tuple(kind for kind in kinds if isinstance(kind, Kind)))


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
