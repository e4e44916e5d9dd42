"""Determines the kinds of a function's variables, expressions and result.

Assignments are visited until no kind is unknown, or has risen, after it was read. A kind only rises
(from BOOL through INT to FLOAT), so that one round is enough for most functions.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from typing import TYPE_CHECKING, Any

from gscope.capture.kernels.language.kinds import AnyKind, Kind, RecordKind
from gscope.capture.kernels.native.calls import FUNCTIONS, intrinsic_of
from gscope.capture.kernels.native.source import (
    UNKNOWN,
    arguments,
    known,
    parameters_of,
    python_function,
    unsupported,
)
from gscope.capture.kernels.native.values import kind_of_constant, united

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import FunctionType

    from gscope.capture.kernels.native.source import Source

_BITWISE = (ast.BitAnd, ast.BitOr, ast.BitXor)


class Inference:
    """The kinds in one function, for given kinds of its arguments.

    Attributes:
        source: the function.
        fixed: parameters that are constant in this compilation, with their values.
        variables: kinds of all other parameters and of the local variables.
        assignments: how many statements assign each of these variables.
        result: kind of what it returns.
    """

    def __init__(
        self,
        source: Source,
        kinds: Mapping[str, AnyKind],
        fixed: Mapping[str, Any],
        result_of: Callable[[FunctionType, Mapping[str, AnyKind], Mapping[str, Any]], AnyKind],
    ) -> None:
        self.source = source
        self.fixed = fixed
        self.variables: dict[str, AnyKind] = dict(kinds)
        self._result_of = result_of
        self._result: AnyKind | None = None
        self._has_changed = self._is_outdated = True
        while self._has_changed and self._is_outdated:
            self._has_changed = self._is_outdated = False
            self.assignments: Counter[str] = Counter()
            self._visit(source.body)

    @property
    def result(self) -> AnyKind:
        """The kind of what the function returns."""
        return Kind.NOTHING if self._result is None else self._result

    def known(self, expression: ast.expr) -> Any:
        """Return the value of a constant expression, or ``UNKNOWN``."""
        return known(expression, self.source, self.variables, self.fixed)

    def kind(self, expression: ast.expr) -> AnyKind | None:
        """Return the kind of an expression; None if it depends on a kind that is not yet known."""
        if isinstance(expression, ast.Name) and expression.id in self.variables:
            return self.variables[expression.id]
        # Most expressions are one of these, and neither is a constant.
        if isinstance(expression, ast.Call):
            return self._kind_of_call(expression)
        if isinstance(expression, ast.BinOp):
            left, right = self.kind(expression.left), self.kind(expression.right)
            return kind_of_operation(expression.op, left, right)
        if (value := self.known(expression)) is not UNKNOWN:
            return kind_of_constant(value)
        match expression:
            case ast.Name():
                self._is_outdated = True
                return None
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return Kind.BOOL
            case ast.UnaryOp():
                kind = self.kind(expression.operand)
                return Kind.INT if kind is Kind.BOOL else kind
            case ast.BoolOp():
                return self._united(expression.values)
            case ast.IfExp():
                return self._united((expression.body, expression.orelse))
            case ast.Tuple():
                return _record(None, map(self.kind, expression.elts))
            case ast.Attribute():
                owner = self.kind(expression.value)
                if owner is None:
                    return None
                assert isinstance(owner, RecordKind)
                return owner.parts[field_number(owner, expression.attr)]
            case ast.Subscript():
                is_row = self.kind(expression.value) is Kind.ROWS
                is_whole = not isinstance(expression.slice, ast.Tuple)
                return Kind.WORDS if is_row and is_whole else Kind.INT
        raise unsupported(expression)

    def fixed_arguments(self, called: Any, call: ast.Call) -> dict[str, Any]:
        """Return the constant arguments of a call for which ``called`` is compiled separately."""
        function = python_function(called)
        assert function is not None
        if not getattr(called, "is_unrolled", False):
            return {}
        parameters = parameters_of(function)
        values = {
            name: self.known(argument)
            for name, argument in zip(parameters, arguments(call, parameters), strict=True)
        }
        return {name: value for name, value in values.items() if value is not UNKNOWN}

    def _united(self, expressions: Iterable[ast.expr]) -> AnyKind | None:
        found = [kind for kind in map(self.kind, expressions) if kind is not None]
        # One that is not yet known will be known in a later round.
        return functools.reduce(united, found) if found else None

    def _kind_of_call(self, call: ast.Call) -> AnyKind | None:
        called = self.known(call.func)
        function = python_function(called)
        if function is not None:
            parameters = parameters_of(function)
            given = arguments(call, parameters)
            kinds = {name: self.kind(each) for name, each in zip(parameters, given, strict=True)}
            found = {name: kind for name, kind in kinds.items() if kind is not None}
            if len(found) < len(kinds):
                return None
            return self._result_of(function, found, self.fixed_arguments(called, call))
        if hasattr(called, "_fields"):
            return _record(called, map(self.kind, arguments(call, called._fields)))
        kinds_given = [self.kind(each) for each in call.args]
        if None in kinds_given:
            return None
        if called in FUNCTIONS:
            return FUNCTIONS[called].kind([kind for kind in kinds_given if kind is not None])
        return intrinsic_of(called, call).result

    def _visit(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            match statement:
                case ast.Assign():
                    for target in statement.targets:
                        self._assign(target, self.kind(statement.value))
                case ast.AnnAssign(value=ast.expr() as value):
                    self._assign(statement.target, self.kind(value))
                case ast.AugAssign(target=ast.Name(id=name)):
                    before, by = self.variables.get(name), self.kind(statement.value)
                    self._assign(statement.target, kind_of_operation(statement.op, before, by))
                case ast.For():
                    self._assign(statement.target, Kind.INT)
                    self._visit(statement.body)
                case ast.If() | ast.While():
                    self._visit(statement.body)
                    self._visit(statement.orelse)
                case ast.Return():
                    returned = statement.value
                    self._return(Kind.NOTHING if returned is None else self.kind(returned))

    def _return(self, kind: AnyKind | None) -> None:
        if kind is not None:
            before = self._result
            self._result = kind if before is None else united(before, kind)
            self._has_changed |= self._result != before

    def _assign(self, target: ast.expr, kind: AnyKind | None) -> None:
        if kind is None:
            return
        match target:
            case ast.Name(id=name):
                self.assignments[name] += 1
                before = self.variables.get(name)
                self.variables[name] = kind if before is None else united(before, kind)
                if self.variables[name] != before:
                    self._has_changed = True
                    # Statements before this one may have read it, or a constant of the same name.
                    self._is_outdated |= before is not None or name in self.source.scope
            case ast.Tuple(elts=targets):
                assert isinstance(kind, RecordKind)
                for each, part in zip(targets, kind.parts, strict=True):
                    self._assign(each, part)


def kind_of_operation(
    operator: ast.operator, a: AnyKind | None, b: AnyKind | None
) -> AnyKind | None:
    """Return the kind of the result of an operator; None if an operand's is not yet known."""
    if a is None or b is None:
        return None
    if Kind.FLOAT in (a, b) or isinstance(operator, ast.Div):
        return Kind.FLOAT
    return Kind.BOOL if a == b == Kind.BOOL and isinstance(operator, _BITWISE) else Kind.INT


def field_number(kind: RecordKind, name: str) -> int:
    """Return the position of a field in a named tuple."""
    fields: tuple[str, ...] = getattr(kind.record, "_fields", ())
    return fields.index(name)


def _record(record: type[Any] | None, kinds: Iterable[AnyKind | None]) -> RecordKind | None:
    found = list(kinds)
    parts = tuple(kind for kind in found if kind is not None)
    return RecordKind(record, parts) if len(parts) == len(found) else None
