"""Values in a kernel: a kind with its LLVM values; see ``capture/kernels/language/kinds.py``."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from llvmlite import ir

from gscope.capture.kernels.language.kinds import AnyKind, Kind, RecordKind


class KernelSyntaxError(Exception):
    """A kernel contains what this compiler does not support."""


_BOOL, _INT, _FLOAT = ir.IntType(1), ir.IntType(64), ir.DoubleType()
_LLVM: dict[Kind, tuple[Any, ...]] = {
    Kind.BOOL: (_BOOL,),
    Kind.INT: (_INT,),
    Kind.FLOAT: (_FLOAT,),
    Kind.WORDS: (_INT,),
    Kind.ROWS: (_INT, _INT),
    Kind.NOTHING: (),
}
_PYTHON: tuple[tuple[Kind, type], ...] = ((Kind.BOOL, bool), (Kind.INT, int), (Kind.FLOAT, float))
NUMBERS = (Kind.BOOL, Kind.INT, Kind.FLOAT)


class Value(NamedTuple):
    """A value in a kernel.

    Attributes:
        kind: its kind.
        llvm: its LLVM values, of the types that ``llvm_types`` gives.
    """

    kind: AnyKind
    llvm: tuple[Any, ...]

    @property
    def only(self) -> Any:
        """The LLVM value of a single value."""
        (value,) = self.llvm
        return value

    def parts(self) -> list[Value]:
        """Return the values of the fields of a record."""
        assert isinstance(self.kind, RecordKind)
        return [self.part(number) for number in range(len(self.kind.parts))]

    def part(self, number: int) -> Value:
        """Return the value of a field of a record."""
        assert isinstance(self.kind, RecordKind)
        kinds = self.kind.parts
        at = sum(len(llvm_types(kind)) for kind in kinds[:number])
        return Value(kinds[number], self.llvm[at : at + len(llvm_types(kinds[number]))])


def llvm_types(kind: AnyKind) -> tuple[Any, ...]:
    """Return the LLVM types of a value of this kind, those of a record one after another."""
    if isinstance(kind, RecordKind):
        return tuple(of for part in kind.parts for of in llvm_types(part))
    return _LLVM[kind]


def united(a: AnyKind, b: AnyKind) -> AnyKind:
    """Return the kind of a variable that is assigned values of both.

    Raises:
        KernelSyntaxError: there is none.
    """
    if a == b:
        return a
    if a in NUMBERS and b in NUMBERS:
        return max(a, b, key=NUMBERS.index)
    if isinstance(a, RecordKind) and isinstance(b, RecordKind) and a.record is b.record:
        return RecordKind(a.record, tuple(map(united, a.parts, b.parts)))
    message = f"a variable is both {a} and {b}"
    raise KernelSyntaxError(message)


def kind_of_constant(value: object) -> Kind:
    """Return the kind of a constant.

    Raises:
        KernelSyntaxError: kernels have no such constants.
    """
    if value is None:
        return Kind.NOTHING
    for kind, python in _PYTHON:
        if isinstance(value, python):
            return kind
    message = f"unsupported constant {value!r}"
    raise KernelSyntaxError(message)


def constant_value(value: object) -> Value:
    """Return a constant as a value.

    Raises:
        KernelSyntaxError: kernels have no such constants.
    """
    if type(value) is int:
        return _integer(value)
    kind = kind_of_constant(value)
    if kind is Kind.INT:
        return _integer(int(value))  # type: ignore[call-overload]
    (of,) = _LLVM[kind]
    return Value(kind, (of(int(value) if kind is Kind.BOOL else value),))  # type: ignore[call-overload]


@functools.lru_cache(4096)
def _integer(value: int) -> Value:
    assert -(2**63) <= value < 2**63, value
    return Value(Kind.INT, (_INT(value),))
