"""Generated kernels as files: written once, named by their hash, loaded as compiled before.

The hash covers the source and, through ``sources_digest``, every helper it calls and numba's version, so that
two versions of gscope never share a file. numba keeps the machine code beside the other kernels' (``jit.py``).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import stat
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gscope.capture.jit import sources_digest
from gscope.capture.lfta.codegen.generate import generate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from gscope.queries.plan.program import Lfta


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """The kernel of a query set, shared by all its interfaces.

    Attributes:
        lftas: names, in the order of their numbers in the kernel.
        path: the file with the source.
        run: takes packets of a block; see ``codegen/generate.py``.
        flush: puts out groups of one LFTA.
        literals: bytes of the query's STRING literals; kernels hold their address.
        slot_bytes: for each LFTA the bytes of a slot in each of its tables.
        scratch_words: words of scratch for each packet of a batch.
    """

    lftas: tuple[str, ...]
    path: Path
    run: Callable[..., int]
    flush: Callable[..., bool]
    literals: NDArray[np.uint8]
    slot_bytes: tuple[tuple[int, ...], ...]
    scratch_words: int


def load_kernel(lftas: Sequence[Lfta]) -> CompiledKernel:
    """Generate, write and import the kernel of ``lftas``; numba compiles it when it first runs, if it must.

    Raises:
        UnsupportedError: an LFTA asks for what kernels do not have.
        UsageError: a user function is not what it is declared to be.
    """
    generated = generate(lftas)
    name = hashlib.sha256((sources_digest() + generated.source).encode()).hexdigest()[:24]
    if generated.user_functions and not _is_written(name):
        from gscope.capture.lfta.user_kernels import check_user_kernel

        for function in generated.user_functions:
            check_user_kernel(function)
    path = _write(name, generated.source)
    module = _import(name, path)
    return CompiledKernel(
        tuple(lfta.name for lfta in lftas),
        path,
        module.run,
        module.flush,
        np.frombuffer(generated.literals or b"\0", np.uint8).copy(),
        generated.slot_bytes,
        generated.scratch_words,
    )


def _is_written(name: str) -> bool:
    """Whether the kernel was made before; then its user functions have been checked."""
    try:
        return (_user_folder() / f"lfta_{name}.py").exists()
    except OSError:
        return False


def _write(name: str, source: str) -> Path:
    """The file that holds ``source``; never rewritten, since numba stamps its cache with the file's time."""
    for folder in (_user_folder, _private_folder):
        try:
            path = folder() / f"lfta_{name}.py"
            if not path.exists() or path.read_text() != source:
                descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
                with os.fdopen(descriptor, "w") as file:
                    file.write(source)
                Path(temporary).replace(path)
        except OSError:
            continue
        return path
    message = "no folder to write a kernel to"
    raise OSError(message)


def _user_folder() -> Path:
    """``$XDG_CACHE_HOME/gscope/lfta``, ours alone: what stands there is executed."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    folder = root / "gscope" / "lfta"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        message = f"{folder} can be written by others"
        raise PermissionError(message)
    return folder


@cache
def _private_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="gscope-lfta-"))


def _import(name: str, path: Path) -> ModuleType:
    module_name = f"gscope_lfta_{name}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    loader: Any = spec.loader
    loader.exec_module(module)
    return module
