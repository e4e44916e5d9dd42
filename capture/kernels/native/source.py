"""Functions of kernels as syntax trees, and the constants in them."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import itertools
import linecache
import re
import textwrap
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from gscope.capture.kernels.native.values import KernelSyntaxError

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

UNKNOWN = object()
"""Stands for the value of an expression that is known at run time only."""


class Source(NamedTuple):
    """A function of a kernel.

    Attributes:
        name: its name.
        parameters: names of its parameters, all positional and without defaults.
        body: its statements, without the docstring.
        scope: values of the names that it does not define itself.
    """

    name: str
    parameters: tuple[str, ...]
    body: tuple[ast.stmt, ...]
    scope: Mapping[str, Any]


_texts: dict[FunctionType, str] = {}
"""The sources of functions that are never called from Python."""


def translated_module(name: str, text: str) -> ModuleType:
    """Return the module of a kernel that will only be translated.

    Its functions have no bodies. The source of each is parsed when it is translated, so that LLVM
    has work as soon as the first one is.

    Args:
        name: its name.
        text: its source: whatever the functions need, and then functions, each with one decorator.

    Raises:
        KernelSyntaxError: a function begins otherwise.
    """
    begin, *functions = re.split(r"^(?=@)", text, flags=re.MULTILINE)
    parts, texts = [begin], {}
    for each in functions:
        head = _HEAD.match(each)
        if head is None:
            message = f"a function of {name} begins with {each.splitlines()[:2]}"
            raise KernelSyntaxError(message)
        parts.append(f"{head[0]}    pass\n")
        texts[head["name"]] = each
    module = ModuleType(name)
    exec(compile("".join(parts), name, "exec", dont_inherit=True), vars(module))
    for called, each in texts.items():
        if (function := python_function(getattr(module, called))) is not None:
            _texts[function] = each
    return module


_HEAD = re.compile(r"@.*\ndef (?P<name>\w+)\([^:]*:\n")
"""The lines of a generated function before its body: one decorator, and parameters without
types."""


def generated_text(function: FunctionType) -> str | None:
    """Return the source of a function of a ``translated_module``; None for any other."""
    return _texts.get(function)


def parameters_of(function: FunctionType) -> tuple[str, ...]:
    """Return the names of a function's parameters, without its syntax tree."""
    return function.__code__.co_varnames[: function.__code__.co_argcount]


@functools.cache
def source_of(function: FunctionType) -> Source:
    """Return a function's syntax tree.

    Raises:
        KernelSyntaxError: it has parameters that kernels do not have.
    """
    text = _texts.get(function)
    (node,) = ast.parse(_text_of(function) if text is None else text).body
    assert isinstance(node, ast.FunctionDef)
    given = node.args
    if given.vararg or given.kwarg or given.defaults or given.kwonlyargs or given.posonlyargs:
        raise unsupported(node, f"parameters of {node.name}")
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    scope = function.__globals__ | {name: cell.cell_contents for name, cell in cells}
    return Source(node.name, tuple(each.arg for each in given.args), tuple(body), scope)


def _text_of(function: FunctionType) -> str:
    """Return the source of a function.

    ``inspect`` splits it into tokens to find its end. Where a function of a module ends, a line
    follows that is not indented, as the one behind the parameters may be.
    """
    lines = linecache.getlines(function.__code__.co_filename)[
        function.__code__.co_firstlineno - 1 :
    ]
    if not lines or lines[0][:1].isspace():
        return textwrap.dedent(inspect.getsource(function))
    head = next(n for n, line in enumerate(lines) if line.startswith("def "))
    body = itertools.takewhile(lambda line: line[0] in " \n)#", lines[head + 1 :])
    return "".join([*lines[: head + 1], *body])


def python_function(called: object) -> FunctionType | None:
    """Return the function that a kernel or a part of one was made of; None for anything else."""
    function = getattr(called, "py_func", None)
    return function if isinstance(function, FunctionType) else None


def arguments(call: ast.Call, parameters: Sequence[str]) -> list[ast.expr]:
    """Return the arguments of a call in the order of the parameters."""
    given = dict(zip(parameters, call.args, strict=False))
    given |= {each.arg: each.value for each in call.keywords if each.arg is not None}
    if len(given) != len(parameters) or len(call.args) + len(call.keywords) != len(parameters):
        raise unsupported(call, "arguments")
    return [given[name] for name in parameters]


def known(
    expression: ast.expr, source: Source, variables: Container[str], fixed: Mapping[str, Any]
) -> Any:
    """Return the value of an expression that is a constant or a name of the module.

    Args:
        expression: the expression.
        source: the function that contains it.
        variables: names of its variables.
        fixed: parameters that are constant in this compilation.

    Returns:
        The value, or ``UNKNOWN``.
    """
    if isinstance(expression, ast.Constant):
        return expression.value
    if isinstance(expression, ast.Name):
        name = expression.id
        if name in fixed:
            return fixed[name]
        if name in variables or name in source.parameters:
            return UNKNOWN
        found = source.scope.get(name, UNKNOWN)
        return getattr(builtins, name, UNKNOWN) if found is UNKNOWN else found
    if isinstance(expression, ast.Attribute):
        owner = known(expression.value, source, variables, fixed)
        return owner if owner is UNKNOWN else getattr(owner, expression.attr)
    if isinstance(expression, ast.UnaryOp) and isinstance(expression.op, ast.USub):
        value = known(expression.operand, source, variables, fixed)
        return value if value is UNKNOWN else -value
    return UNKNOWN


def unsupported(node: ast.AST, what: str = "") -> KernelSyntaxError:
    """Return the error for code that this compiler does not support."""
    return KernelSyntaxError(f"unsupported {what or type(node).__name__}: {ast.unparse(node)}")
