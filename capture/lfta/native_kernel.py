"""Generated kernels as machine code: compiled, kept beside their source, and called."""

from __future__ import annotations

import functools
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
    from collections.abc import Callable, Sequence
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
        lftas: the number of its LFTAs.
    """

    path: Path
    imported: Callable[[], ModuleType]
    decoder: Path
    lftas: int


class KernelCode:
    """The machine code of a generated source, in modules that call each other.

    They are the decoder, ``run`` with ``flush``, and one for each of several LFTAs. Each is kept
    beside the source once it is compiled. All are translated to LLVM assembly at most once.

    Args:
        source: the source.
    """

    def __init__(self, source: KernelSource) -> None:
        parts = source.lftas if source.lftas > 1 else 0
        self._modules = [
            _Module(source.decoder, "", _decoder_assembly, Path(batch_decoder.__file__)),
            _Module(
                source.path, "", lambda: _kernel_assembly(source.imported(), parts), source.path
            ),
            *(
                _Module(
                    source.path,
                    f".{number}",
                    partial(_part_assembly, source.imported, number),
                    source.path,
                )
                for number in range(parts)
            ),
        ]

    def is_compiled(self, optimization: Optimization) -> bool:
        """Return whether the cache has usable machine code of all modules."""
        return all(each.kept(optimization) is not None for each in self._modules)

    def load(self, optimization: Optimization = Optimization.FULL) -> KernelFunctions:
        """Load all modules at this level; compile and keep those that the cache has not.

        Raises:
            KernelSyntaxError: the source contains what the compiler does not support.
        """
        return self._loaded([optimization])

    def load_best(self) -> KernelFunctions:
        """Load modules optimised where the cache has them so, and all others unoptimised.

        Raises:
            KernelSyntaxError: the source contains what the compiler does not support.
        """
        return self._loaded([Optimization.FULL, Optimization.NONE])

    def _loaded(self, levels: Sequence[Optimization]) -> KernelFunctions:
        reported: set[Path] = set()
        codes = []
        for module in self._modules:
            found = (code for level in levels if (code := module.kept(level)) is not None)
            code = next(found, None)
            if code is None:
                if module.reported not in reported:
                    note_compiling(module.reported)
                    reported.add(module.reported)
                code = module.compiled(levels[-1])
            codes.append(code)
        loaded = LoadedCode(*codes)
        run, flush = loaded.address(RUN), loaded.address(FLUSH)
        return KernelFunctions(partial(_call, run), partial(_call, flush), run, loaded)


class _Module:
    """A module of a kernel.

    Args:
        source: the file beside which its machine code is kept.
        part: the part of its file's name that no other module of the source has.
        translated: translates it to LLVM assembly.
        reported: the file to name as what is compiled.
    """

    def __init__(
        self, source: Path, part: str, translated: Callable[[], str], reported: Path
    ) -> None:
        self._source = source
        self._part = part
        # The optimiser compiles again what the same process has translated for a quick start.
        self._assembly = functools.cache(translated)
        self.reported = reported

    def kept(self, optimization: Optimization) -> bytes | None:
        """Return the machine code that the cache has; None without any that can be used."""
        file = self._file(optimization)
        with suppress(OSError):
            if is_trusted_file(file):
                return read_code(file)
        return None

    def compiled(self, optimization: Optimization) -> bytes:
        """Compile the module, and keep its machine code if the cache can be written."""
        code = machine_code(self._assembly(), optimization)
        with suppress(OSError):
            _keep(self._file(optimization), f"{self._source.stem}.", code)
        return code

    def _file(self, optimization: Optimization) -> Path:
        level = "" if optimization is Optimization.FULL else ".quick"
        return self._source.with_name(f"{self._source.stem}.{processor()}{self._part}{level}.o")


@kernel
def _call(address: int, *arguments: Any) -> int:
    return call_at(address, arguments)


# The compiler is imported where something is to be compiled: most kernels are in the cache.


def _decoder_assembly() -> str:
    from gscope.capture.lfta.kernel_assembly import decoder_assembly

    return decoder_assembly()


def _kernel_assembly(module: ModuleType, parts: int) -> str:
    from gscope.capture.lfta.kernel_assembly import kernel_assembly

    return kernel_assembly(module, parts)


def _part_assembly(imported: Callable[[], ModuleType], number: int) -> str:
    from gscope.capture.lfta.kernel_assembly import part_assembly

    return part_assembly(imported(), number)


def _keep(file: Path, prefix: str, code: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(".tmp", prefix, file.parent)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(write_code(code))
    Path(temporary).replace(file)
