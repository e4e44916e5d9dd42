"""Generated kernels as machine code: compiled, kept beside their source, and called."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gscope.capture.kernels.intrinsics import call_at
from gscope.capture.kernels.jit import kernel, note_compiling
from gscope.capture.kernels.native.machine_code import (
    LoadedCode,
    machine_code,
    processor,
    read_code,
    write_code,
)
from gscope.capture.lfta import batch_decoder
from gscope.queries.ownership import is_trusted_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

RUN, FLUSH = "gscope_run", "gscope_flush"

DECODER_SOURCE = '"""The decoder of all kernels: parts of gscope.capture.lfta.batch_decoder."""\n'
"""The source beside which the decoder's machine code is kept."""


class NativeKernel(NamedTuple):
    """A kernel in memory.

    Attributes:
        run: see ``CompiledKernel``.
        flush: see ``CompiledKernel``.
        address: the address of the code of ``run``.
        code: the code, which must outlive the calls.
    """

    run: Callable[..., int]
    flush: Callable[..., int]
    address: int
    code: LoadedCode


def load_native(path: Path, imported: Callable[[], ModuleType], decoder: Path) -> NativeKernel:
    """Load the machine code of a generated source, or compile it and keep it beside the source.

    Args:
        path: the source.
        imported: returns the source as a module; called only if it must be compiled.
        decoder: where to keep the code of the decoder: the file of ``DECODER_SOURCE``.

    Raises:
        KernelSyntaxError: the source contains what the compiler does not support.
    """
    loaded = LoadedCode(
        _code(decoder, _decoder_assembly, Path(batch_decoder.__file__)),
        _code(path, lambda: _kernel_assembly(imported()), path),
    )
    run, flush = loaded.address(RUN), loaded.address(FLUSH)
    return NativeKernel(partial(_call, run), partial(_call, flush), run, loaded)


@kernel
def _call(address: int, *arguments: Any) -> int:
    return call_at(address, arguments)


# The compiler is imported where something is to be compiled: most kernels are in the cache.


def _decoder_assembly() -> str:
    from gscope.capture.lfta.kernel_assembly import decoder_assembly

    return decoder_assembly()


def _kernel_assembly(module: ModuleType) -> str:
    from gscope.capture.lfta.kernel_assembly import kernel_assembly

    return kernel_assembly(module)


def _code(path: Path, assembly: Callable[[], str], reported: Path) -> bytes:
    """Return the machine code kept beside a source; compile ``reported`` if there is none."""
    file = path.with_name(f"{path.stem}.{processor()}.o")
    code = _read(file)
    if code is None:
        note_compiling(reported)
        code = machine_code(assembly())
        with suppress(OSError):
            _keep(file, f"{path.stem}.", code)
    return code


def _read(file: Path) -> bytes | None:
    with suppress(OSError):
        if is_trusted_file(file):
            return read_code(file)
    return None


def _keep(file: Path, prefix: str, code: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(".tmp", prefix, file.parent)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(write_code(code))
    Path(temporary).replace(file)
