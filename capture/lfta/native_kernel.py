"""Generated kernels as machine code: compiled, kept beside their source, and called."""

from __future__ import annotations

import functools
import gc
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gscope.capture.kernels.compiling import note_missing
from gscope.capture.kernels.kept_module import KeptModule
from gscope.capture.kernels.loading import c_function
from gscope.capture.kernels.native.machine_code import LoadedCode, Optimization
from gscope.capture.lfta import batch_decoder
from gscope.capture.lfta.kernel_arguments import RUN_PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gscope.capture.lfta.kernel_assembly import KernelTranslator

RUN, FLUSH = "gscope_run", "gscope_flush"

DECODER_SOURCE = '"""The decoder of all kernels: parts of gscope.capture.lfta.batch_decoder."""\n'
"""The source beside which the decoder's machine code is kept."""


_RUN_WORDS = len(RUN_PARAMETERS) + 1
"""Words of the arguments of ``run``: the rows of ``StateArrays.lftas`` have two, address and
step."""
_FLUSH_WORDS = 3


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
        text: the source.
        decoder: where to keep the code of the decoder: the file of ``DECODER_SOURCE``.
        lftas: the number of its LFTAs.
    """

    path: Path
    text: str
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
        path = source.path
        kernel = functools.cache(partial(_kernel_translator, path.stem, source.text, parts))
        self._modules = [
            _module(source.decoder, "", _decoder_assembly, Path(batch_decoder.__file__)),
            _module(path, "", partial(_kernel_assembly, kernel), path),
            *(
                _module(path, f".{number}", partial(_part_assembly, kernel, number), path)
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
        codes: list[bytes | Future[bytes]] = []
        # LLVM works without the interpreter's lock, while this thread translates the next module.
        with ThreadPoolExecutor(1, "LLVM") as llvm, _frequent_switches(), _no_collections():
            for module in self._modules:
                found = (code for level in levels if (code := module.kept(level)) is not None)
                code = next(found, None)
                if code is not None:
                    codes.append(code)
                    continue
                if module.reported not in reported:
                    note_missing(module.reported)
                    reported.add(module.reported)
                module.translate()
                codes.append(llvm.submit(module.compiled, levels[-1]))
        loaded = LoadedCode(*(c.result() if isinstance(c, Future) else c for c in codes))
        run, flush = loaded.address(RUN), loaded.address(FLUSH)
        return KernelFunctions(_called(run, _RUN_WORDS), _called(flush, _FLUSH_WORDS), run, loaded)


@contextmanager
def _frequent_switches() -> Iterator[None]:
    """Let threads of Python that work beside each other take turns each half of a millisecond.

    A thread that calls LLVM needs the interpreter's lock for a moment between two calls, and would
    wait ten times longer for it than LLVM takes.
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Collect no garbage.

    A translation makes a hundred thousand nodes of syntax trees, and no cycles. They are in use
    until its end, and each collection visits them: a sixth of the time of large kernels.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _module(source: Path, part: str, translated: Callable[[], str], reported: Path) -> KeptModule:
    """Return a module that is kept beside a source."""
    return KeptModule(source.parent, source.stem, part, translated, reported)


def _called(address: int, words: int) -> Callable[..., int]:
    """Return the machine code at an address as a function of numbers and arrays."""
    function = c_function(address, words)

    def call(*arguments: Any) -> int:
        given: list[int] = []
        for each in arguments:
            if isinstance(each, np.ndarray):
                given.append(each.__array_interface__["data"][0])
                if each.ndim == 2:
                    given.append(each.strides[0])
            else:
                given.append(each)
        return function(*given)

    return call


# The compiler is imported where something is to be compiled: most kernels are in the cache.


def _decoder_assembly() -> str:
    from gscope.capture.lfta.kernel_assembly import decoder_assembly

    return decoder_assembly()


def _kernel_translator(name: str, text: str, parts: int) -> KernelTranslator:
    from gscope.capture.lfta.kernel_assembly import KernelTranslator

    return KernelTranslator(name, text, parts)


def _kernel_assembly(kernel: Callable[[], KernelTranslator]) -> str:
    return kernel().kernel()


def _part_assembly(kernel: Callable[[], KernelTranslator], number: int) -> str:
    return kernel().part(number)
