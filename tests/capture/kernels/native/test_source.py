"""The sources of kernels' functions, found without splitting files into tokens."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gscope.capture
from gscope.capture.kernels.native.source import (
    python_function,
    source_of,
    translated_module,
)
from gscope.capture.kernels.native.values import KernelSyntaxError
from gscope.capture.lfta.cache import load_kernel
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from types import FunctionType, ModuleType

GENERATED = (
    "SELECT tb, srcIP, count(*), max(len) FROM IP WHERE len > 60 GROUP BY time/10 AS tb, srcIP"
)


def functions_of(module: ModuleType) -> set[FunctionType]:
    found = map(python_function, vars(module).values())
    return {function for function in found if function is not None}


def test_a_function_is_what_inspect_finds() -> None:
    """All parts of kernels of the package, and those of a generated kernel."""
    names = [
        each.name for each in pkgutil.walk_packages(gscope.capture.__path__, "gscope.capture.")
    ]
    modules = [importlib.import_module(name) for name in names]
    functions = set().union(*map(functions_of, modules))
    assert len(functions) > 150
    program = compile_queries([QueryText(GENERATED, "q")], CompileContext(("up",))).program
    spec = importlib.util.spec_from_file_location("made", load_kernel(program.lftas).path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    generated = {each for each in functions_of(made) if each.__module__ == "made"}
    assert len(generated) > 3
    parsed = translated_module("parsed", Path(inspect.getfile(made)).read_text())
    trees = {each.__name__: source_of(each) for each in functions_of(parsed)}
    for function in generated:
        again, source = trees[function.__name__], source_of(function)
        assert again.parameters == source.parameters
        assert list(map(ast.dump, again.body)) == list(map(ast.dump, source.body))
    for function in functions | generated:
        node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(node, ast.FunctionDef)
        docstring = ast.get_docstring(node, clean=False)
        body = node.body if docstring is None else node.body[1:]
        found = source_of(function)
        assert found.name == node.name
        assert list(map(ast.dump, found.body)) == list(map(ast.dump, body))


def test_a_function_within_a_function_too() -> None:
    def outer() -> object:
        def inner(a: int) -> int:
            return a + 1

        return inner

    inner = outer()
    assert inspect.isfunction(inner)
    assert ast.dump(source_of(inner).body[0]) == ast.dump(
        ast.parse("def inner(a):\n  return a + 1").body[0].body[0]  # type: ignore[attr-defined]
    )


def test_a_function_that_is_written_otherwise_is_refused() -> None:
    with pytest.raises(KernelSyntaxError, match="a function of odd begins with"):
        translated_module("odd", "a = 1\n@kernel\n@kernel_part\ndef run(a):\n    return a\n")
