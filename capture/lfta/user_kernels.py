"""User functions in kernels: compiled by numba from the text that the program carries.

A kernel cannot stop half way, so that a function which is declared safe must not raise; what it
computes must be what Python computes, since Spark runs it as Python. Both are tried when a kernel
is made.
"""

from __future__ import annotations

import ast
import math
import random
import re
from typing import TYPE_CHECKING, Any

from gscope.capture.kernels.numba_kernels import helper, types
from gscope.errors import UsageError, UserCodeError
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.user_functions.calls import UserScalar
from gscope.queries.catalog.user_functions.checks import sample
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable

_TRIALS = 200
_SEED = 2
_REMEDY = "declare lfta_safe=False to run it on Spark alone"
_STYLE = re.compile("\x1b\\[[0-9;]*m")
_LINE = re.compile(r'File "[^"]*", line (\d+)')
_NUMBERS = {GsqlType.FLOAT: types.float64, GsqlType.BOOL: types.boolean}
_RESULTS = {GsqlType.FLOAT: (types.Float, types.Integer), GsqlType.BOOL: (types.Boolean,)}


def user_kernel(name: str, digest: str) -> Callable[..., Any]:
    """Return what kernels call for the user function ``name`` of the file with that ``digest``."""
    code = _code(name)
    assert code.file.digest == digest, name
    compiled: Callable[..., Any] = helper(code.function)
    return compiled


def check_user_kernel(name: str) -> None:
    """Compile the user function ``name`` and try it.

    Raises:
        UsageError: numba cannot compile it, or its results differ from Python's.
    """
    code = _code(name)
    _check_statements(code)
    compiled: Any = helper(code.function)
    try:
        compiled.compile(tuple(_NUMBERS.get(k, types.int64) for k in code.facts.parameters))
    except Exception as error:
        raise _wrong(code, *_complaint(code, error)) from error
    result = compiled.nopython_signatures[0].return_type
    if not isinstance(result, _RESULTS.get(code.facts.returns, (types.Integer,))):
        why = f"when compiled it returns {result}, expected {code.facts.returns.value}"
        raise _wrong(code, code.function.__code__.co_firstlineno, why)
    _check_values(code, compiled)


def _code(name: str) -> UserScalar:
    code = FUNCTIONS[name].evaluate
    assert isinstance(code, UserScalar), name
    return code


def _check_statements(code: UserScalar) -> None:
    """Refuse statements that raise."""
    for node in ast.walk(ast.parse(code.file.text)):
        if isinstance(node, ast.FunctionDef) and node.name == code.attribute:
            for part in ast.walk(node):
                if isinstance(part, ast.Raise | ast.Assert):
                    raise _wrong(
                        code, part.lineno, "it can raise, and a kernel cannot propagate exceptions"
                    )


def _check_values(code: UserScalar, compiled: Callable[..., Any]) -> None:
    chance = random.Random(_SEED)
    line = code.function.__code__.co_firstlineno
    for _ in range(_TRIALS):
        values = [sample(kind, chance) for kind in code.facts.parameters]
        try:
            expected: Any = code(*values)
        except UserCodeError as error:
            raise _wrong(code, line, f"for some values it fails: {error}") from error
        got = compiled(*values)
        if not _same(expected, got):
            shown = f"{code.facts.name}({', '.join(map(str, values))})"
            raise _wrong(code, line, f"{shown} is {expected} in Python, but {got} compiled")


def _same(expected: Any, got: Any) -> bool:
    if isinstance(expected, float):
        return float(got) == expected or (math.isnan(expected) and math.isnan(got))
    return bool(int(got) == int(expected))


def _complaint(code: UserScalar, error: Exception) -> tuple[int, str]:
    """Return the line and the essence of numba's message."""
    text = _STYLE.sub("", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wordy = [line for line in lines if not line.startswith(("Failed in", "File ", "During:"))]
    numbers = [int(number) for number in _LINE.findall(text)]
    first = code.function.__code__.co_firstlineno
    why = wordy[0] if wordy else type(error).__name__
    return (numbers[0] if numbers else first), f"numba cannot compile it: {why}"


def _wrong(code: UserScalar, line: int, why: str) -> UsageError:
    return UsageError(
        f"{code.file.path}:{line}: {code.facts.name} is declared lfta_safe, but {why}; {_REMEDY}"
    )
