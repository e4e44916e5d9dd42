"""Generated kernels as files: written once, named by their hash, loaded if already compiled.

The hash covers the source and, through ``sources_digest``, every helper it calls and the compiler,
so that two versions of gscope never share a file. Machine code is kept beside the source
(``native_kernel.py``). Only numba compiles user functions, and so a kernel that calls one; it keeps
such a kernel where it keeps others (``capture/kernels/kept.py``). A process that has compiled a
kernel calls ``prune_kernels`` (``capture/kernels/disk_cache.py``).
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import logging
import os
import shutil
import stat
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gscope.capture.kernels.bounds import checks_bounds
from gscope.capture.kernels.compiling import compiling_reported, has_compiled
from gscope.capture.kernels.disk_cache import mark_used, prune
from gscope.capture.kernels.kept import kernels_folder, sources_digest
from gscope.capture.lfta.codegen.generate import generate
from gscope.capture.lfta.native_kernel import DECODER_SOURCE, KernelFunctions, KernelSource
from gscope.capture.lfta.tiers import KernelTiers, kernel_tiers
from gscope.queries.ownership import ensure_private_folder
from gscope.queries.streams.process_events import KernelCompiling
from gscope.queries.user_cache import cache_folder, keep_text
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from gscope.queries.plan.program import Lfta

_log = logging.getLogger(__name__)

_PREFIX = "lfta_"
"""Prefix of the names of generated sources."""
_PRIVATE = "gscope-lfta-"
"""Prefix of folders that replace a user's cache folder that cannot be used."""


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """The kernel of a query set, shared by all its interfaces.

    Attributes:
        lftas: names, in the order of their numbers in the kernel, which is not that of the queries.
        path: the file with the source.
        tiers: its functions, of which ``tiers.functions`` are to be called.
        literals: bytes of the query's STRING literals; kernels have their address.
        slot_bytes: for each LFTA, in that order, the bytes of a slot in each of its tables.
        scratch_words: words of scratch for each packet of a batch.
    """

    lftas: tuple[str, ...]
    path: Path
    tiers: KernelTiers
    literals: NDArray[np.uint8]
    slot_bytes: tuple[tuple[int, ...], ...]
    scratch_words: int


def load_kernel(
    lftas: Sequence[Lfta], marks: Mapping[str, int] | None = None, *, is_quick: bool = False
) -> CompiledKernel:
    """Generate and write the kernel of ``lftas``, and load it or compile it.

    The same LFTAs in another order have the same kernel.

    Args:
        lftas: the LFTAs.
        marks: for LFTAs that save the packets that pass, by name, the bit that marks these.
        is_quick: whether a new kernel begins unoptimised (see ``tiers.py``).

    Raises:
        UnsupportedError: an LFTA needs something that kernels do not support.
        UsageError: a user function does not match its declaration.
    """
    lftas = sorted(lftas, key=lambda lfta: lfta.name)
    generated = generate(lftas, marks)
    name = _name(generated.source)
    if generated.user_functions and not _is_written(name):
        from gscope.capture.lfta.user_kernels import check_user_kernel

        for function in generated.user_functions:
            check_user_kernel(function)
    path = _write(name, generated.source)

    if generated.user_functions or checks_bounds():
        try:
            module = _import(name, path)
        except FileNotFoundError:
            # Another process has pruned the folder just now.
            module = _import(name, _write(name, generated.source))
        tiers = KernelTiers(KernelFunctions(module.run, module.flush, None, None))
    else:
        decoder = _write(_name(DECODER_SOURCE), DECODER_SOURCE)
        source = KernelSource(path, generated.source, decoder, len(lftas))
        tiers = kernel_tiers(source, is_quick=is_quick)
    return CompiledKernel(
        tuple(lfta.name for lfta in lftas),
        path,
        tiers,
        np.frombuffer(generated.literals or b"\0", np.uint8).copy(),
        generated.slot_bytes,
        generated.scratch_words,
    )


@contextmanager
def compiling_noted(
    queries: tuple[str, ...],
    on_compile: Callable[[KernelCompiling], object],
) -> Iterator[None]:
    """Report each kernel that is compiled meanwhile: that of ``queries``, and those of gscope."""
    number = 0

    def on_miss(source: Path) -> None:
        nonlocal number
        number += 1
        is_of_queries = source.name.startswith(_PREFIX)
        on_compile(KernelCompiling(queries if is_of_queries else (), number))

    with compiling_reported(on_miss):
        yield


def _name(source: str) -> str:
    return hashlib.sha256((sources_digest() + source).encode()).hexdigest()[:24]


def prune_kernels() -> None:
    """Prune the cache in the background if this process has added to it."""
    if has_compiled():
        threading.Thread(target=_prune, name="prune kernels", daemon=True).start()


def _prune() -> None:
    with suppress(OSError):
        freed = prune(kernels_folder(), _user_folder(), time.time_ns())
        if freed:
            _log.info("removed %d bytes of the least recently used kernels", freed)


def _is_written(name: str) -> bool:
    """Return whether the kernel was written before; then its user functions have been checked."""
    try:
        return (_user_folder() / f"{_PREFIX}{name}.py").exists()
    except OSError:
        return False


def _write(name: str, source: str) -> Path:
    """Return the file with ``source``; not rewritten, as numba's cache records its time."""
    for folder in (_user_folder, _private_folder):
        try:
            path = folder() / f"{_PREFIX}{name}.py"
            if keep_text(path, source):
                mark_used(path)
        except OSError:
            continue
        return path
    message = "no folder to write a kernel to"
    raise OSError(message)


def _user_folder() -> Path:
    """Return the cache's folder ``lfta``; only this user can write it: its files are executed."""
    root = cache_folder()
    if root is None:
        message = "no folder for the sources of kernels"
        raise OSError(message)
    return ensure_private_folder(root / "lfta")


@cache
def _private_folder() -> Path:
    _sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=f"{_PRIVATE}{os.getpid()}-"))
    atexit.register(remove_private_folder)
    return folder


def _sweep(folder: Path) -> None:
    """Remove private folders that killed processes of this user left."""
    for left in folder.glob(f"{_PRIVATE}*"):
        number = left.name.removeprefix(_PRIVATE).partition("-")[0]
        with suppress(OSError):
            status = left.lstat()
            is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            is_over = number.isdecimal() and not Path(f"/proc/{number}").exists()
            if is_ours and is_over:
                shutil.rmtree(left, ignore_errors=True)


def remove_private_folder() -> None:
    """Remove the private folder that replaced the user's, if one was created."""
    if _private_folder.cache_info().currsize:
        shutil.rmtree(_private_folder(), ignore_errors=True)
        _private_folder.cache_clear()


def _import(name: str, path: Path) -> ModuleType:
    module_name = f"gscope_lfta_{name}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    loader: Any = spec.loader
    loader.exec_module(module)
    sys.modules[module_name] = module
    return module
