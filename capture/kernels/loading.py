"""Native kernels in memory: their machine code loaded, or compiled, and called from Python."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gscope.capture.kernels.compiling import note_missing
from gscope.capture.kernels.kept import folder_of
from gscope.capture.kernels.kept_module import KeptModule
from gscope.capture.kernels.language.kinds import Kind, RecordKind, word_count
from gscope.capture.kernels.native.machine_code import LoadedCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.capture.kernels.jit import NativeKernel


def c_function(address: int, parameters: int) -> Callable[..., int]:
    """Return the machine code at an address as a function of words, which runs without the GIL.

    Args:
        address: where the code begins.
        parameters: number of its arguments, each a word of 64 bits.
    """
    return _prototype(parameters)(address)


def loaded_function(kernel: NativeKernel) -> Callable[..., Any]:
    """Return what calls a native kernel, with one word for each of its arguments' fields."""
    function = kernel.py_func
    source = Path(function.__code__.co_filename)
    name = function.__name__
    module = KeptModule(
        folder_of(source, is_native=True),
        f"{function.__module__}.{name}",
        "",
        lambda: _assembly(kernel),
        source,
    )
    code = module.kept()
    if code is None:
        note_missing(source)
        code = module.compiled()
    loaded = LoadedCode(code)
    parameters = sum(map(word_count, kernel.kinds))
    results = word_count(kernel.result) if isinstance(kernel.result, RecordKind) else 0
    called = c_function(loaded.address(f"gscope_{name}"), parameters + (results > 0))

    if results:
        room = ctypes.c_int64 * results

        def call_for_record(*words: int) -> tuple[int, ...]:
            found = room()
            called(*words, ctypes.addressof(found))
            return tuple(found)

        made: Callable[..., Any] = call_for_record
    elif kernel.result is Kind.NOTHING:

        def call_for_nothing(*words: int) -> None:
            called(*words)

        made = call_for_nothing
    else:
        made = called
    # The code stays in memory as long as what calls it.
    made.loaded = loaded  # type: ignore[attr-defined]
    return made


@functools.cache
def _prototype(parameters: int) -> Callable[[int], Callable[..., int]]:
    return ctypes.CFUNCTYPE(ctypes.c_int64, *(ctypes.c_int64,) * parameters)


def _assembly(kernel: NativeKernel) -> str:
    from gscope.capture.kernels.native.module import KernelModule

    made = KernelModule()
    made.export(kernel, kernel.kinds)
    return str(made)
