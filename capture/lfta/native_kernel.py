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
    Optimization,
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


class KernelFunctions(NamedTuple):
    """The functions of a kernel in memory.

    Attributes:
        run: processes packets of a block; see ``kernel_arguments.py``.
        flush: emits groups of one LFTA; the result is false if room ran out.
        address: the address of the machine code of ``run``, for ``call_at``; None if numba
            compiled it.
        code: owns the machine code, and must outlive the calls.
    """

    run: Callable[..., int]
    flush: Callable[..., int]
    address: int | None
    code: object


class KernelSource(NamedTuple):
    """A generated source and its decoder, of which machine code is made.

    Attributes:
        path: the file of the source.
        imported: returns the source as a module; called only if it must be compiled.
        decoder: where to keep the code of the decoder: the file of ``DECODER_SOURCE``.
    """

    path: Path
    imported: Callable[[], ModuleType]
    decoder: Path

    def is_compiled(self, optimization: Optimization) -> bool:
        """Return whether the cache has usable machine code of it."""
        return all(
            _read(code_file(path, optimization)) is not None for path in (self.path, self.decoder)
        )


def load_native(
    source: KernelSource, optimization: Optimization = Optimization.FULL
) -> KernelFunctions:
    """Load the machine code of a generated source, or compile it and keep it beside the source.

    Raises:
        KernelSyntaxError: the source contains what the compiler does not support.
    """
    decoder = (source.decoder, _decoder_assembly, Path(batch_decoder.__file__))
    kernel_code = (source.path, lambda: _kernel_assembly(source.imported()), source.path)
    loaded = LoadedCode(*(_code(*each, optimization) for each in (decoder, kernel_code)))
    run, flush = loaded.address(RUN), loaded.address(FLUSH)
    return KernelFunctions(partial(_call, run), partial(_call, flush), run, loaded)


def code_file(source: Path, optimization: Optimization) -> Path:
    """Return the file of the machine code of a source, for this processor."""
    level = "" if optimization is Optimization.FULL else ".quick"
    return source.with_name(f"{source.stem}.{processor()}{level}.o")


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


def _code(
    path: Path, assembly: Callable[[], str], reported: Path, optimization: Optimization
) -> bytes:
    """Return the machine code kept beside a source; compile ``reported`` if there is none."""
    file = code_file(path, optimization)
    code = _read(file)
    if code is None:
        note_compiling(reported)
        code = machine_code(assembly(), optimization)
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
