"""Calls of user functions in kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen.scope import Lowered, Scope
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.user_functions.calls import UserScalar
from gscope.queries.expressions.expressions import Call, Expression, walk
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_CASTS = {GsqlType.FLOAT: "float({})", GsqlType.BOOL: "bool({})"}


def user_functions(expressions: Iterable[Expression]) -> tuple[str, ...]:
    """Return the names of the user functions that ``expressions`` call, each once."""
    calls = (p for e in expressions for p in walk(e) if isinstance(p, Call))
    return tuple(dict.fromkeys(c.function for c in calls if is_user_function(c.function)))


def is_user_function(name: str) -> bool:
    """Return whether ``name`` is a function of a user's file."""
    entry = FUNCTIONS.get(name)
    return entry is not None and isinstance(entry.evaluate, UserScalar)


def user_imports(names: Sequence[str]) -> Iterator[str]:
    """Yield lines that define user functions in a kernel's file, with digests of their texts."""
    if names:
        yield "from gscope.capture.lfta.user_kernels import user_kernel"
    for name in names:
        code = FUNCTIONS[name].evaluate
        assert isinstance(code, UserScalar)
        yield f"user_{name} = user_kernel({name!r}, {code.file.digest!r})"


def lower_user_function(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    """Return a strict call; if an argument is NULL, its result is computed anyway and ignored."""
    code = f"user_{call.function}({', '.join(argument.code for argument in arguments)})"
    cast = _CASTS.get(call.type, "np.int64({})")
    null = scope.either(*(argument.null for argument in arguments))
    return Lowered(call.type, (scope.value(cast.format(code)),), null)
