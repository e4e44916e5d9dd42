"""Builds the code of expressions.

Arithmetic of INT is marked "never overflows", as numba marks it: kernels use intrinsics
(``wrap_add``) where it can. FLOAT follows IEEE 754 without shortcuts.
"""

from __future__ import annotations

import ast
from contextlib import contextmanager
from operator import add, mul, sub
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from gscope.capture.kernels.language.intrinsic_code import floor_quotient
from gscope.capture.kernels.language.intrinsics import External, call_at
from gscope.capture.kernels.language.kinds import AnyKind, Kind, RecordKind
from gscope.capture.kernels.native.calls import (
    FUNCTIONS,
    build_call_at,
    build_external,
    build_intrinsic,
    intrinsic_of,
)
from gscope.capture.kernels.native.inference import field_number, kind_of_operation
from gscope.capture.kernels.native.source import (
    UNKNOWN,
    arguments,
    parameters_of,
    python_function,
    unsupported,
)
from gscope.capture.kernels.native.values import Value, constant_value, llvm_types, united

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from types import FunctionType

    from gscope.capture.kernels.native.inference import Inference

    FunctionFor = Callable[
        [FunctionType, Mapping[str, AnyKind], Mapping[str, Any]], tuple[Any, AnyKind]
    ]

_I1, _I64, _F64 = ir.IntType(1), ir.IntType(64), ir.DoubleType()
_POINTER = _I64.as_pointer()
_WORD_SHIFT = 3
_NO_OVERFLOW = ["nsw"]
_COMPARISONS = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


class NeedsMemoryError(Exception):
    """A variable without memory is read where its one assignment does not always come first.

    Attributes:
        name: its name.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Expressions:
    """Builds the code of the expressions of one function.

    A variable that one statement assigns is the value that is assigned: LLVM gets no memory for it,
    and no instructions that load and store. Nearly all variables are of this kind.

    Args:
        inference: the kinds in the function.
        function: the LLVM function, whose first block ``builder`` is at the end of.
        builder: builds its code.
        function_for: returns the LLVM function for a call, and the kind of its result.
        in_memory: variables that need memory although only one statement assigns them.
    """

    def __init__(
        self,
        inference: Inference,
        function: Any,
        builder: Any,
        function_for: FunctionFor,
        in_memory: Collection[str],
    ) -> None:
        self.inference = inference
        self.function = function
        self.builder = builder
        self._function_for = function_for
        parameters, assignments = inference.source.parameters, inference.assignments
        self._slots = {
            name: tuple(builder.alloca(of) for of in llvm_types(kind))
            for name, kind in inference.variables.items()
            if assignments[name] + (name in parameters) > 1 or name in in_memory
        }
        self._values: dict[str, Value] = {}

    def store(self, name: str, value: Value) -> None:
        """Assign a value to a variable."""
        converted = self.convert(value, self.inference.variables[name])
        if name not in self._slots:
            self._values[name] = converted
            return
        for word, slot in zip(converted.llvm, self._slots[name], strict=True):
            self.builder.store(word, slot)

    @contextmanager
    def within_body(self) -> Iterator[None]:
        """Build statements that are not always executed: their assignments hold among them only."""
        before = self._values
        self._values = before.copy()
        yield
        self._values = before

    def convert(self, value: Value, kind: AnyKind) -> Value:
        """Return a value as one of another kind."""
        if value.kind == kind:
            return value
        if isinstance(kind, RecordKind):
            parts = zip(value.parts(), kind.parts, strict=True)
            words = [word for part, of in parts for word in self.convert(part, of).llvm]
            return Value(kind, tuple(words))
        build = self.builder
        match value.kind, kind:
            case Kind.BOOL, Kind.INT:
                word = build.zext(value.only, _I64)
            case Kind.BOOL, Kind.FLOAT:
                word = build.uitofp(value.only, _F64)
            case Kind.INT, Kind.FLOAT:
                word = build.sitofp(value.only, _F64)
            case Kind.FLOAT, Kind.INT:
                word = build.fptosi(value.only, _I64)
            case Kind.INT, Kind.BOOL:
                word = build.icmp_signed("!=", value.only, _I64(0))
            case Kind.FLOAT, Kind.BOOL:
                word = build.fcmp_unordered("!=", value.only, _F64(0.0))
            case _:
                message = f"{value.kind} as {kind}"
                raise AssertionError(message)
        return Value(kind, (word,))

    def build(self, expression: ast.expr) -> Value:
        """Build an expression."""
        # Most expressions are one of the first four.
        if isinstance(expression, ast.Name) and expression.id in self.inference.variables:
            return self._variable(expression.id)
        if isinstance(expression, ast.Constant):
            return constant_value(expression.value)
        if isinstance(expression, ast.Call):
            return self._call(expression)
        if isinstance(expression, ast.BinOp):
            left, right = self.build(expression.left), self.build(expression.right)
            return self.operate(expression.op, left, right)
        if (value := self.inference.known(expression)) is not UNKNOWN:
            return constant_value(value)
        match expression:
            case ast.UnaryOp():
                return self._unary(expression)
            case ast.Compare():
                return self._compare(expression)
            case ast.BoolOp():
                return self._logical(expression)
            case ast.IfExp():
                return self._either(expression)
            case ast.Tuple(elts=elements):
                return _record(None, [self.build(each) for each in elements])
            case ast.Attribute():
                owner = self.build(expression.value)
                assert isinstance(owner.kind, RecordKind)
                return owner.part(field_number(owner.kind, expression.attr))
            case ast.Subscript():
                return self._element(expression)
        raise unsupported(expression)

    def _variable(self, name: str) -> Value:
        if (value := self._values.get(name)) is not None:
            return value
        if name not in self._slots:
            raise NeedsMemoryError(name)
        words = tuple(self.builder.load(slot) for slot in self._slots[name])
        return Value(self.inference.variables[name], words)

    def operate(self, operator: ast.operator, left: Value, right: Value) -> Value:
        """Build an operation of two values."""
        if (constant := _constant_result(operator, left, right)) is not None:
            return constant
        kind = kind_of_operation(operator, left.kind, right.kind)
        assert kind is not None
        a, b = self.convert(left, kind).only, self.convert(right, kind).only
        build = self.builder
        is_float = kind is Kind.FLOAT
        match operator:
            case ast.Add():
                word = build.fadd(a, b) if is_float else build.add(a, b, flags=_NO_OVERFLOW)
            case ast.Sub():
                word = build.fsub(a, b) if is_float else build.sub(a, b, flags=_NO_OVERFLOW)
            case ast.Mult():
                word = build.fmul(a, b) if is_float else build.mul(a, b, flags=_NO_OVERFLOW)
            case ast.Div():
                word = build.fdiv(a, b)
            case ast.FloorDiv() if not is_float:
                word = floor_quotient(build, a, b)
            case ast.BitAnd() if not is_float:
                word = build.and_(a, b)
            case ast.BitOr() if not is_float:
                word = build.or_(a, b)
            case ast.BitXor() if not is_float:
                word = build.xor(a, b)
            case ast.LShift() if not is_float:
                word = build.shl(a, b)
            case ast.RShift() if not is_float:
                word = build.ashr(a, b)
            case _:
                raise unsupported(operator, type(operator).__name__)
        return Value(kind, (word,))

    def branch(self, test: ast.expr, yes: Any, no: Any) -> None:
        """End the block: go to ``yes`` if the test holds, else to ``no``."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.branch(test.operand, no, yes)
            return
        if isinstance(test, ast.BoolOp):
            is_and = isinstance(test.op, ast.And)
            for each in test.values[:-1]:
                further = self.block("further")
                self.branch(each, *((further, no) if is_and else (yes, further)))
                self.builder.position_at_end(further)
            self.branch(test.values[-1], yes, no)
            return
        self.builder.cbranch(self._truth(self.build(test)), yes, no)

    def block(self, name: str) -> Any:
        """Append an empty block."""
        return self.function.append_basic_block(name)

    def place(self, expression: ast.Subscript) -> Any:
        """Return a pointer to an element of an array."""
        array = self.build(expression.value)
        build = self.builder
        if isinstance(expression.slice, ast.Tuple):
            row, column = expression.slice.elts
            begin = self._row(array, row)
        else:
            begin, column = array.only, expression.slice
        number = self._number(column)
        if isinstance(number, ir.Constant):
            offset = _I64(number.constant << _WORD_SHIFT)
        else:
            offset = build.shl(number, _I64(_WORD_SHIFT))
        return build.inttoptr(build.add(begin, offset), _POINTER)

    def _row(self, array: Value, number: ast.expr) -> Any:
        begin, width = array.llvm
        return self.builder.add(begin, self.builder.mul(self._number(number), width))

    def _number(self, expression: ast.expr) -> Any:
        return self.convert(self.build(expression), Kind.INT).only

    def _truth(self, value: Value) -> Any:
        return self.convert(value, Kind.BOOL).only

    def _element(self, expression: ast.Subscript) -> Value:
        is_whole = not isinstance(expression.slice, ast.Tuple)
        if is_whole and self.inference.kind(expression.value) is Kind.ROWS:
            return Value(Kind.WORDS, (self._row(self.build(expression.value), expression.slice),))
        return Value(Kind.INT, (self.builder.load(self.place(expression)),))

    def _unary(self, expression: ast.UnaryOp) -> Value:
        value = self.build(expression.operand)
        build = self.builder
        if isinstance(expression.op, ast.Not):
            return Value(Kind.BOOL, (build.not_(self._truth(value)),))
        match expression.op, value.kind:
            case ast.USub(), Kind.BOOL | Kind.INT:
                value = self.convert(value, Kind.INT)
                return Value(Kind.INT, (build.sub(_I64(0), value.only, flags=_NO_OVERFLOW),))
            case ast.USub(), Kind.FLOAT:
                return Value(Kind.FLOAT, (build.fneg(value.only),))
            case ast.Invert(), Kind.INT:
                return Value(Kind.INT, (build.not_(value.only),))
        raise unsupported(expression)

    def _compare(self, expression: ast.Compare) -> Value:
        left, held = self.build(expression.left), []
        for operator, other in zip(expression.ops, expression.comparators, strict=True):
            if isinstance(operator, ast.In | ast.NotIn):
                equal = [self._holds("==", left, each) for each in self._members(other)]
                found = self._folded(self.builder.or_, equal)
                held.append(self.builder.not_(found) if isinstance(operator, ast.NotIn) else found)
            else:
                right = self.build(other)
                held.append(self._holds(_COMPARISONS[type(operator)], left, right))
                left = right
        return Value(Kind.BOOL, (self._folded(self.builder.and_, held),))

    def _members(self, expression: ast.expr) -> list[Value]:
        """Return the values of a tuple: written down, or a constant of the module."""
        if isinstance(expression, ast.Tuple):
            return [self.build(each) for each in expression.elts]
        values = self.inference.known(expression)
        if not isinstance(values, tuple):
            raise unsupported(expression)
        return [constant_value(each) for each in values]

    @staticmethod
    def _folded(combine: Callable[[Any, Any], Any], words: Sequence[Any]) -> Any:
        result = words[0]
        for word in words[1:]:
            result = combine(result, word)
        return result

    def _holds(self, operator: str, left: Value, right: Value) -> Any:
        kind = united(united(left.kind, right.kind), Kind.INT)
        a, b = self.convert(left, kind).only, self.convert(right, kind).only
        if kind is not Kind.FLOAT:
            return self.builder.icmp_signed(operator, a, b)
        # A comparison with NaN is false, but that it is different holds.
        compare = self.builder.fcmp_unordered if operator == "!=" else self.builder.fcmp_ordered
        return compare(operator, a, b)

    def _logical(self, expression: ast.BoolOp) -> Value:
        if self.inference.kind(expression) is not Kind.BOOL:
            raise unsupported(expression, "logic of numbers")
        yes, no, after = self.block("yes"), self.block("no"), self.block("after")
        self.branch(expression, yes, no)
        for block in (yes, no):
            self.builder.position_at_end(block)
            self.builder.branch(after)
        self.builder.position_at_end(after)
        chosen = self.builder.phi(_I1)
        chosen.add_incoming(_I1(1), yes)
        chosen.add_incoming(_I1(0), no)
        return Value(Kind.BOOL, (chosen,))

    def _either(self, choice: ast.IfExp) -> Value:
        kind = self.inference.kind(choice)
        assert kind is not None
        yes, no, after = self.block("yes"), self.block("no"), self.block("after")
        self.branch(choice.test, yes, no)
        ends = []
        for block, expression in ((yes, choice.body), (no, choice.orelse)):
            self.builder.position_at_end(block)
            value = self.convert(self.build(expression), kind)
            ends.append((value, self.builder.block))
            self.builder.branch(after)
        self.builder.position_at_end(after)
        words = []
        for number, of in enumerate(llvm_types(kind)):
            chosen = self.builder.phi(of)
            for value, block in ends:
                chosen.add_incoming(value.llvm[number], block)
            words.append(chosen)
        return Value(kind, tuple(words))

    def _call(self, call: ast.Call) -> Value:
        called = self.inference.known(call.func)
        function = python_function(called)
        if function is not None:
            return self._call_part(called, function, call)
        if hasattr(called, "_fields"):
            return _record(called, [self.build(each) for each in arguments(call, called._fields)])
        values = [self.build(each) for each in call.args]
        if called in FUNCTIONS:
            kind = FUNCTIONS[called].kind([value.kind for value in values])
            words = [self.convert(value, kind).only for value in values]
            return Value(kind, (FUNCTIONS[called].build(self.builder, words),))
        if called is call_at:
            address, given_all = values
            return Value(Kind.INT, (build_call_at(self.builder, address.only, given_all.llvm),))
        found = intrinsic_of(called, call)
        given = zip(values, found.parameters, strict=True)
        words = [self.convert(*each).only for each in given]
        if isinstance(found, External):
            return Value(Kind.INT, (build_external(found, self.builder, words),))
        result = build_intrinsic(found, self.builder, words)
        return Value(found.result, () if found.result is Kind.NOTHING else (result,))

    def _call_part(self, called: Any, function: FunctionType, call: ast.Call) -> Value:
        parameters = parameters_of(function)
        fixed = self.inference.fixed_arguments(called, call)
        given = zip(parameters, arguments(call, parameters), strict=True)
        values = {name: self.build(each) for name, each in given if name not in fixed}
        kinds = {name: value.kind for name, value in values.items()}
        target, kind = self._function_for(function, kinds, fixed)
        words = [word for value in values.values() for word in value.llvm]
        result = self.builder.call(target, words)
        width = len(llvm_types(kind))
        if width < 2:
            # A linked function that returns nothing returns 0.
            return Value(kind, (result,) * width)
        return Value(kind, tuple(self.builder.extract_value(result, at) for at in range(width)))


def _constant_result(operator: ast.operator, left: Value, right: Value) -> Value | None:
    """Return the result of an operation of two integers that are known.

    None if it is not simple.
    """
    calculate = _SIMPLE.get(type(operator))
    if calculate is None or left.kind is not Kind.INT or right.kind is not Kind.INT:
        return None
    a, b = left.only, right.only
    if not isinstance(a, ir.Constant) or not isinstance(b, ir.Constant):
        return None
    result = calculate(a.constant, b.constant)
    return constant_value(result) if -(2**63) <= result < 2**63 else None


_SIMPLE: dict[Any, Callable[[int, int], int]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
}


def _record(record: type[Any] | None, values: Sequence[Value]) -> Value:
    kind = RecordKind(record, tuple(value.kind for value in values))
    return Value(kind, tuple(word for value in values for word in value.llvm))
