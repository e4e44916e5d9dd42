"""The only module of the capture that imports numba: it compiles kernels, and keeps them on disk.

numba watches only the file of a kernel, so that a changed helper in another file would leave a
stale kernel: each source file has a folder that is named by a hash of it and of its imports
(``kept.py``).

Environment:
    GSCOPE_BOUNDSCHECK: "1" checks every array access in kernels (for tests); such kernels are not
        kept.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numba
from numba.core import types as _types
from numba.core.caching import FunctionCache as _UntypedFunctionCache
from numba.core.registry import cpu_target as _cpu_target
from numba.extending import intrinsic as _numba_intrinsic
from numba.extending import typeof_impl as _typeof_impl

from gscope.capture.kernels.bounds import checks_bounds
from gscope.capture.kernels.compiling import note_compiled, note_missing
from gscope.capture.kernels.jit import Kernel, Role
from gscope.capture.kernels.kept import folder_of
from gscope.capture.kernels.language.intrinsic_code import BUILD, address_of_array
from gscope.capture.kernels.language.intrinsics import Intrinsic, address_of
from gscope.capture.kernels.language.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import FunctionType

# Partly typed in numba; what builds LLVM code is not checkable anyway.
types: Any = _types
_FunctionCache: Any = _UntypedFunctionCache
_njit: Any = numba.njit
_TYPES = {
    Kind.BOOL: types.boolean,
    Kind.INT: types.int64,
    Kind.FLOAT: types.float64,
    Kind.NOTHING: types.void,
}

_naming = threading.Lock()


def dispatcher_of(function: FunctionType, role: Role) -> Any:
    """Return what numba calls a dispatcher.

    It compiles ``function``, or loads what was compiled.
    """
    if role is Role.PART:
        return _without_copies(_compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True))
    kept = _kept(function)
    return kept if role is Role.UNROLLED else _without_copies(kept)


def helper(function: Callable[..., Any]) -> Any:
    """Compile ``function`` for kernels to call; it is not stored, since its file is not ours."""
    return _compiled(function)


@_typeof_impl.register(Kernel)
def _type_of_kernel(called: Kernel, _context: Any) -> Any:
    """Return numba's type of a kernel, for kernels that call it."""
    return called.dispatcher._numba_type_


@_typeof_impl.register(Intrinsic)
def _type_of_intrinsic(intrinsic: Intrinsic, _context: Any) -> Any:
    """Return numba's type of an intrinsic, whose code is that of ``intrinsic_code.py``."""
    with _naming:
        if intrinsic not in _intrinsics:
            _intrinsics[intrinsic] = _numba_intrinsic(_typing_of(intrinsic))
            _cpu_target.typing_context.refresh()
    return _cpu_target.typing_context.resolve_value_type(_intrinsics[intrinsic])


_intrinsics: dict[Any, Any] = {}


def _typing_of(intrinsic: Intrinsic) -> Callable[..., Any]:
    """Return what numba calls the typing function of an intrinsic."""
    if intrinsic is cast("Any", address_of):
        return _address_of
    signature = _TYPES[intrinsic.result](*(_TYPES[kind] for kind in intrinsic.parameters))
    build = BUILD[intrinsic.name]

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        made = build(builder, *values)
        return context.get_dummy_value() if made is None else made

    # numba counts the parameters of the typing function, so there is one for each arity.
    def typing1(_context: Any, a: Any) -> Any:  # noqa: ARG001
        return signature, codegen

    def typing2(_context: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
        return signature, codegen

    def typing3(_context: Any, a: Any, b: Any, c: Any) -> Any:  # noqa: ARG001
        return signature, codegen

    return (typing1, typing2, typing3)[len(intrinsic.parameters) - 1]


def _address_of(_context: Any, array: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, values[0])
        return address_of_array(builder, made.data)

    return types.int64(array), codegen


def _compiled(function: Callable[..., Any], **options: bool) -> Any:
    options |= {"nogil": True, "boundscheck": checks_bounds()}
    return _njit(error_model="numpy", **options)(function)


def _kept(function: FunctionType) -> Any:
    dispatcher = _compiled(function)
    folder = (
        None if checks_bounds() else folder_of(Path(function.__code__.co_filename), is_native=False)
    )
    if folder is None:
        return dispatcher
    # Threads compile at the same time, and numba has one setting for all.
    with _naming:
        cast("Any", numba).config.CACHE_DIR = str(folder)
        # No file holds the source, or numba may write to no folder (a read-only system without a
        # home).
        with suppress(RuntimeError, OSError):
            dispatcher._cache = _KernelCache(function)
    return dispatcher


def _without_copies(dispatcher: Any) -> Any:
    """Let kernels call it with constants as with any other numbers.

    numba would compile the function again for each combination of constants; LLVM specialises it
    where that pays.
    """
    resolve = dispatcher.get_call_template

    def of_any_number(arguments: Iterable[Any], keywords: Mapping[str, Any]) -> Any:
        kinds = tuple(types.unliteral(kind) for kind in arguments)
        return resolve(kinds, {k: types.unliteral(kind) for k, kind in keywords.items()})

    dispatcher.get_call_template = of_any_number
    return dispatcher


class _KernelCache(_FunctionCache):  # type: ignore[misc]
    """numba's files of one function, which is compiled again if anything is wrong with them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._source = Path(function.__code__.co_filename)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(sig, target_context)
        except Exception:
            # A file truncated by a crash, or just removed: numba raises whatever unpickling raises.
            found = None
        if found is not None and tuple(found.signature.args) != tuple(sig):
            # Two processes that save at the same time may give two kernels the same file.
            found = None
        if found is None:
            note_missing(self._source)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        note_compiled()
        try:
            super().save_overload(sig, data)
        except Exception:
            # An unreadable index is started again; on a full disk nothing is stored.
            with suppress(OSError):
                self.flush()
                super().save_overload(sig, data)
