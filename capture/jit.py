"""The one place that imports numba: ``kernel`` compiles a function, ``intrinsic`` makes one of LLVM code.

Compiled kernels are kept on disk below a folder named by a hash of every source that takes part in kernels.
numba itself watches only the file a kernel stands in, so that without the hash a changed helper in another
file would leave a stale kernel behind.

Environment:
    GSCOPE_BOUNDSCHECK: "1" checks every array access in kernels (for tests); such kernels are not kept.
    NUMBA_CACHE_DIR: where to keep compiled kernels; by default ``$XDG_CACHE_HOME/gscope/kernels``.
"""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
from numba.core import cgutils as _cgutils
from numba.core import types as _types
from numba.extending import intrinsic as _numba_intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

# Partly typed in numba; what builds LLVM code is not checkable anyway.
types: Any = _types
cgutils: Any = _cgutils

F = TypeVar("F", bound="Callable[..., Any]")

_BOUNDSCHECK = os.environ.get("GSCOPE_BOUNDSCHECK", "") not in ("", "0")


def kernel(function: F) -> F:
    """Compile ``function`` on its first call, or load it as compiled before.

    A kernel releases the GIL while it runs, wraps on integer overflow, and gives inf or nan for a float
    division by zero instead of raising. The result keeps the function's type for type checkers.
    """
    compile_ = functools.partial(
        numba.njit, nogil=True, error_model="numpy", boundscheck=_BOUNDSCHECK
    )
    if _BOUNDSCHECK:
        return cast("F", compile_(cache=False)(function))
    _point_numba_at_our_cache()
    try:
        return cast("F", compile_(cache=True)(function))
    except RuntimeError:
        # numba found no folder that it may write to (a read-only system without a home): compile each time.
        return cast("F", compile_(cache=False)(function))


def intrinsic(codegen: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function, callable in kernels only, of a numba typing function (see numba's ``intrinsic``)."""
    return cast("Callable[..., Any]", _numba_intrinsic(codegen))


@functools.cache
def sources_digest() -> str:
    """Hash of all sources that take part in kernels: decoding, and every file that uses this module."""
    here = Path(__file__).parent
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(here.rglob("*.py")):
        text = path.read_bytes()
        if path.parent.name == "packet" or b"gscope.capture.jit" in text or path.samefile(__file__):
            digest.update(path.relative_to(here).as_posix().encode() + b"\0" + text)
    return digest.hexdigest()[:16]


@functools.cache
def _point_numba_at_our_cache() -> None:
    default = (
        Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "gscope" / "kernels"
    )
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or default) / sources_digest()
    try:
        # Private: numba unpickles what it finds here.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return
    cast("Any", numba).config.CACHE_DIR = str(folder)
