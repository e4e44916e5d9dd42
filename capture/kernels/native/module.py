"""A kernel as one LLVM module: every function that it reaches, compiled once for each use.

The input is the Python source of the kernel and its parts, which numba compiles as well: a small
language of numbers, addresses and loops. Because its types follow from the operations, no general
type inference is needed, and because everything is in one module, LLVM optimises it once. A kernel
is compiled in a sixth of the time that numba takes (decision 40).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from llvmlite import ir

from gscope.capture.kernels.language.kinds import AnyKind, Kind, RecordKind, word_count
from gscope.capture.kernels.native.assembly import Builder, Function, Module
from gscope.capture.kernels.native.expressions import NeedsMemoryError
from gscope.capture.kernels.native.inference import Inference
from gscope.capture.kernels.native.source import parameters_of, python_function, source_of
from gscope.capture.kernels.native.statements import Statements, llvm_result
from gscope.capture.kernels.native.translations import (
    Call,
    Translation,
    Translations,
    Use,
    references,
)
from gscope.capture.kernels.native.values import llvm_types

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FunctionType

_I64 = ir.IntType(64)


class _Compiled(NamedTuple):
    function: Any
    result: AnyKind


class Linked(NamedTuple):
    """A function that another module exports.

    Attributes:
        kinds: kinds of its arguments, whose LLVM values are all of 64 bits.
        result: kind of its result: INT, or NOTHING.
    """

    kinds: tuple[AnyKind, ...]
    result: Kind

    @property
    def llvm_type(self) -> Any:
        """The type of the exported function."""
        types = [of for kind in self.kinds for of in llvm_types(kind)]
        assert all(of == _I64 for of in types)
        return ir.FunctionType(_I64, types)


class KernelModule:
    """An LLVM module to which functions are added with all that they call.

    Args:
        linked: kernels that are not compiled in this module, but linked from another that exports
            them.
        translations: what other modules of the kernel have translated, to which this one adds.
    """

    def __init__(
        self,
        linked: Mapping[Any, Linked] | None = None,
        translations: Translations | None = None,
    ) -> None:
        self._module = Module()
        self._translations = translations or Translations()
        self._linked = {python_function(each): facts for each, facts in (linked or {}).items()}
        self._declared: dict[FunctionType, Any] = {}
        self._inferred: dict[Use, Inference] = {}
        self._compiled: dict[Use, _Compiled] = {}
        self._repeated: dict[Use, Translation | None] = {}

    def __str__(self) -> str:
        """Return the module as LLVM assembly."""
        return str(self._module)

    def export(self, kernel: object, kinds: Sequence[AnyKind]) -> None:
        """Add a kernel under ``exported_name``, as a C function of ``int64_t`` that returns one.

        Args:
            kernel: the kernel; what it returns must be an integer, or nothing, which is 0, or a
                tuple of integers, which the function stores at the address in a last argument.
            kinds: kinds of its arguments. Each takes as many arguments as it has LLVM values.

        Raises:
            KernelSyntaxError: the kernel, or a part of it, contains what is not supported.
        """
        function = python_function(kernel)
        assert function is not None
        parameters = parameters_of(function)
        compiled, result = self._function_for(
            function, dict(zip(parameters, kinds, strict=True)), {}
        )
        count = len(compiled.args) + isinstance(result, RecordKind)
        exported = Function(
            self._module, ir.FunctionType(_I64, [_I64] * count), exported_name(function)
        )
        builder = Builder(exported, exported.append_basic_block("entry"))
        value = builder.call(compiled, exported.args[: len(compiled.args)])
        match result:
            case Kind.INT:
                builder.ret(value)
            case Kind.BOOL:
                builder.ret(builder.zext(value, _I64))
            case RecordKind():
                place = builder.inttoptr(exported.args[-1], _I64.as_pointer())
                for at in range(word_count(result)):
                    word = builder.extract_value(value, at)
                    whole = word if word.type == _I64 else builder.zext(word, _I64)
                    builder.store(whole, builder.gep(place, [_I64(at)]))
                builder.ret(_I64(0))
            case _:
                assert result is Kind.NOTHING, result
                builder.ret(_I64(0))

    def _result_of(
        self,
        function: FunctionType,
        kinds: Mapping[str, AnyKind],
        fixed: Mapping[str, Any],
    ) -> AnyKind:
        if function in self._linked:
            return self._linked[function].result
        return self._result(_use(function, kinds, fixed))

    def _result(self, use: Use) -> AnyKind:
        repeated = self._translation(use)
        return self._infer(use).result if repeated is None else repeated.result

    def _infer(self, use: Use) -> Inference:
        if use not in self._inferred:
            self._inferred[use] = Inference(
                source_of(use.function), dict(use.kinds), dict(use.fixed), self._result_of
            )
        return self._inferred[use]

    def _translation(self, use: Use) -> Translation | None:
        """Return a translation that can be repeated.

        It is of a function whose calls have equal results.
        """
        if use not in self._repeated:
            found = self._translations.find(use)
            if found is not None and not all(
                self._result_of(*_parts(found.use_in(call, use.function))) == call.result
                for call in found.calls
            ):
                found = None
            self._repeated[use] = found
        return self._repeated[use]

    def _function_for(
        self,
        function: FunctionType,
        kinds: Mapping[str, AnyKind],
        fixed: Mapping[str, Any],
    ) -> tuple[Any, AnyKind]:
        if function in self._linked:
            return self._declaration(function, tuple(kinds.values())), self._linked[function].result
        use = _use(function, kinds, fixed)
        if use not in self._compiled:
            repeated = self._translation(use)
            self._compiled[use] = (
                self._build(use) if repeated is None else self._repeat(use, repeated)
            )
        return self._compiled[use]

    def _declaration(self, function: FunctionType, kinds: tuple[AnyKind, ...]) -> Any:
        linked = self._linked[function]
        assert kinds == linked.kinds, function.__name__
        if function not in self._declared:
            self._declared[function] = self._module.declare(
                exported_name(function), linked.llvm_type
            )
        return self._declared[function]

    def _build(self, use: Use) -> _Compiled:
        inference = self._infer(use)
        types = [of for name, _ in use.kinds for of in llvm_types(inference.variables[name])]
        signature = ir.FunctionType(llvm_result(inference.result), types)
        function = self._begin(use, signature)
        function.linkage = "internal"
        function.attributes.add("nounwind")
        calls: dict[str, Call] = {}

        def function_for(
            called: FunctionType, kinds: Mapping[str, AnyKind], fixed: Mapping[str, Any]
        ) -> tuple[Any, AnyKind]:
            found, result = self._function_for(called, kinds, fixed)
            reference = found.get_reference()
            calls[reference] = Call(_use(called, kinds, fixed), reference, result)
            return found, result

        in_memory: set[str] = set()
        while True:
            try:
                Statements(inference, function, function_for, in_memory).build()
            except NeedsMemoryError as error:
                in_memory.add(error.name)
                function.clear()
            else:
                break
        function.end()
        self._add_translation(use, function, inference.result, calls)
        return _Compiled(function, inference.result)

    def _add_translation(
        self, use: Use, function: Function, result: AnyKind, calls: Mapping[str, Call]
    ) -> None:
        text = str(function)
        others = references(text) - calls.keys()
        declared = {
            name: each
            for name, each in self._module.globals.items()
            if each.get_reference() in others
        }
        translation = Translation(
            use.function,
            result,
            function.signature,
            function.get_reference(),
            text,
            tuple(calls.values()),
            declared,
        )
        self._translations.add(use, translation)

    def _repeat(self, use: Use, translation: Translation) -> _Compiled:
        function = self._begin(use, translation.signature)
        names = {translation.reference: function.get_reference()}
        for call in translation.calls:
            called, _ = self._function_for(*_parts(translation.use_in(call, use.function)))
            names[call.reference] = called.get_reference()
        self._module.globals |= translation.declared
        function.end(translation.renamed(names))
        return _Compiled(function, translation.result)

    def _begin(self, use: Use, signature: Any) -> Function:
        unique = self._module.get_unique_name(f"{use.function.__name__}.part")
        return Function(self._module, signature, unique)


def exported_name(kernel: object) -> str:
    """Return the name under which a kernel is exported."""
    function = python_function(kernel) or kernel
    return f"gscope_{getattr(function, '__name__', '')}"


def _use(function: FunctionType, kinds: Mapping[str, AnyKind], fixed: Mapping[str, Any]) -> Use:
    given = tuple((name, kind) for name, kind in kinds.items() if name not in fixed)
    return Use(function, given, tuple(fixed.items()))


def _parts(use: Use) -> tuple[FunctionType, dict[str, AnyKind], dict[str, Any]]:
    return use.function, dict(use.kinds), dict(use.fixed)
