"""Builds the code of statements, and so of a whole function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from gscope.capture.kernels.language.kinds import AnyKind, Kind
from gscope.capture.kernels.native.assembly import Builder
from gscope.capture.kernels.native.expressions import Expressions
from gscope.capture.kernels.native.source import UNKNOWN, unsupported
from gscope.capture.kernels.native.values import Value, llvm_types

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gscope.capture.kernels.native.expressions import FunctionFor
    from gscope.capture.kernels.native.inference import Inference

_I64 = ir.IntType(64)


def llvm_result(kind: AnyKind) -> Any:
    """Return the LLVM type of what a function returns."""
    types = llvm_types(kind)
    if len(types) == 1:
        return types[0]
    return ir.LiteralStructType(types) if types else ir.VoidType()


class Statements:
    """Builds the code of one function; its arguments are the values of ``inference.variables``.

    Args:
        inference: the kinds in the function.
        function: the LLVM function, still empty.
        function_for: returns the LLVM function for a call, and the kind of its result.
        in_memory: see ``Expressions``.
    """

    def __init__(
        self,
        inference: Inference,
        function: Any,
        function_for: FunctionFor,
        in_memory: Collection[str] = (),
    ) -> None:
        self._inference = inference
        self._build = Builder(function, function.append_basic_block("entry"))
        self._expressions = Expressions(inference, function, self._build, function_for, in_memory)
        self._loops: list[tuple[Any, Any]] = []
        given = iter(function.args)
        for name in inference.source.parameters:
            if name not in inference.fixed:
                kind = inference.variables[name]
                words = tuple(next(given) for _ in llvm_types(kind))
                self._expressions.store(name, Value(kind, words))

    def build(self) -> None:
        """Build the function.

        Raises:
            NeedsMemoryError: a variable must be ``in_memory``; what is built is of no use.
        """
        self._visit(self._inference.source.body)
        if not self._build.block.is_terminated:
            if self._inference.result is Kind.NOTHING:
                self._build.ret_void()
            else:
                self._build.unreachable()

    def _visit(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            if self._build.block.is_terminated:
                return
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        value = self._expressions.build
        match statement:
            case ast.Assign():
                result = value(statement.value)
                for target in statement.targets:
                    self._assign(target, result)
            case ast.AnnAssign(value=ast.expr() as expression):
                self._assign(statement.target, value(expression))
            case ast.AugAssign():
                self._augment(statement)
            case ast.Expr():
                value(statement.value)
            case ast.If():
                self._if(statement)
            case ast.While() if not statement.orelse:
                self._while(statement)
            case ast.For() if not statement.orelse:
                self._for(statement)
            case ast.Return():
                self._return(statement)
            case ast.Break():
                self._build.branch(self._loops[-1][1])
            case ast.Continue():
                self._build.branch(self._loops[-1][0])
            case ast.Pass():
                pass
            case _:
                raise unsupported(statement)

    def _assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self._expressions.store(name, value)
            case ast.Tuple(elts=targets):
                for each, part in zip(targets, value.parts(), strict=True):
                    self._assign(each, part)
            case ast.Subscript():
                word = self._expressions.convert(value, Kind.INT).only
                self._build.store(word, self._expressions.place(target))
            case _:
                raise unsupported(target)

    def _augment(self, statement: ast.AugAssign) -> None:
        by = self._expressions.build(statement.value)
        target = statement.target
        if isinstance(target, ast.Subscript):
            place = self._expressions.place(target)
            before = Value(Kind.INT, (self._build.load(place),))
            after = self._expressions.operate(statement.op, before, by)
            self._build.store(self._expressions.convert(after, Kind.INT).only, place)
        else:
            before = self._expressions.build(target)
            self._assign(target, self._expressions.operate(statement.op, before, by))

    def _if(self, statement: ast.If) -> None:
        yes, after = self._expressions.block("then"), self._expressions.block("after")
        no = self._expressions.block("else") if statement.orelse else after
        self._expressions.branch(statement.test, yes, no)
        self._branch_body(yes, statement.body, after)
        if statement.orelse:
            self._branch_body(no, statement.orelse, after)
        self._build.position_at_end(after)

    def _branch_body(self, block: Any, body: Iterable[ast.stmt], after: Any) -> None:
        self._build.position_at_end(block)
        with self._expressions.within_body():
            self._visit(body)
        if not self._build.block.is_terminated:
            self._build.branch(after)

    def _while(self, statement: ast.While) -> None:
        head, body, after = map(self._expressions.block, ("head", "body", "after"))
        self._build.branch(head)
        self._build.position_at_end(head)
        self._expressions.branch(statement.test, body, after)
        self._loop(body, statement.body, head, after)

    def _loop(self, block: Any, body: Iterable[ast.stmt], further: Any, after: Any) -> None:
        self._loops.append((further, after))
        self._branch_body(block, body, further)
        self._loops.pop()
        self._build.position_at_end(after)

    def _for(self, statement: ast.For) -> None:
        """Count in a slot of its own: the loop's variable may be assigned in the body."""
        build = self._build
        counted = statement.iter
        is_range = isinstance(counted, ast.Call) and self._inference.known(counted.func) is range
        if not is_range or not isinstance(statement.target, ast.Name):
            raise unsupported(statement)
        assert isinstance(counted, ast.Call)
        numbers = [
            self._expressions.convert(self._expressions.build(each), Kind.INT).only
            for each in counted.args
        ]
        start, stop = (_I64(0), numbers[0]) if len(numbers) == 1 else numbers[:2]
        step = self._inference.known(counted.args[2]) if len(numbers) == 3 else 1
        if step is UNKNOWN or step == 0:
            raise unsupported(statement)
        with build.goto_entry_block():
            slot = build.alloca(_I64)
        head, body, further, after = map(
            self._expressions.block, ("head", "body", "further", "after")
        )
        build.store(start, slot)
        build.branch(head)
        build.position_at_end(head)
        at = build.load(slot)
        build.cbranch(build.icmp_signed("<" if step > 0 else ">", at, stop), body, after)
        build.position_at_end(further)
        build.store(build.add(build.load(slot), _I64(step), flags=["nsw"]), slot)
        build.branch(head)
        build.position_at_end(body)
        with self._expressions.within_body():
            self._expressions.store(statement.target.id, Value(Kind.INT, (at,)))
            self._loop(body, statement.body, further, after)

    def _return(self, statement: ast.Return) -> None:
        if statement.value is None:
            self._build.ret_void()
            return
        value = self._expressions.build(statement.value)
        value = self._expressions.convert(value, self._inference.result)
        if len(value.llvm) == 1:
            self._build.ret(value.only)
            return
        result = ir.Constant(llvm_result(value.kind), ir.Undefined)
        for at, word in enumerate(value.llvm):
            result = self._build.insert_value(result, word, at)
        self._build.ret(result)
