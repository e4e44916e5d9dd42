"""The one place that imports numba: ``kernel`` compiles a function, ``intrinsic`` makes one of LLVM code.

Compiled kernels are kept on disk below a folder named by a hash of the kernel's source file and of all that it
imports from here. numba itself watches only the file a kernel stands in, so that without the hash a changed
helper in another file would leave a stale kernel behind.

Environment:
    GSCOPE_BOUNDSCHECK: "1" checks every array access in kernels (for tests); such kernels are not kept.
    NUMBA_CACHE_DIR: where to keep compiled kernels; by default ``$XDG_CACHE_HOME/gscope/kernels``.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
from numba.core import cgutils as _cgutils
from numba.core import types as _types
from numba.extending import intrinsic as _numba_intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Partly typed in numba; what builds LLVM code is not checkable anyway.
types: Any = _types
cgutils: Any = _cgutils

F = TypeVar("F", bound="Callable[..., Any]")

_HERE = Path(__file__).parent
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
    _point_numba_at_cache(Path(function.__code__.co_filename))
    try:
        return cast("F", compile_(cache=True)(function))
    except RuntimeError:
        # No file holds the source, or numba may write to no folder (a read-only system without a home).
        return cast("F", compile_(cache=False)(function))


def helper(function: F) -> F:
    """Compile ``function`` for kernels to call; by itself it is not kept, since its file is not ours."""
    compile_ = numba.njit(nogil=True, error_model="numpy", boundscheck=_BOUNDSCHECK)
    return cast("F", compile_(function))


def intrinsic(codegen: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function, callable in kernels only, of a numba typing function (see numba's ``intrinsic``)."""
    return cast("Callable[..., Any]", _numba_intrinsic(codegen))


def libc(name: str, result: Any, *arguments: Any) -> Callable[..., int]:
    """A function of the C library, callable in kernels only; it waits without the GIL."""
    return cast("Callable[..., int]", _types.ExternalFunction(name, result(*arguments)))


def entry_of(function: Callable[..., Any], *arguments: Any) -> int:
    """Where the machine code of a kernel for arguments like these is, which returns an int; see ``call_at``.

    So a kernel that is made at run time can be called by one that is compiled once for all.
    """
    kinds = tuple(map(numba.typeof, arguments))
    dispatcher = cast("Any", function)
    dispatcher.compile(kinds)
    made = dispatcher.overloads[kinds]
    assert made.signature.return_type == types.int64
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))


@functools.cache
def sources_digest() -> str:
    """Hash of all sources that take part in kernels: decoding, and every file that uses this module."""
    return _digest(
        path
        for path in _HERE.rglob("*.py")
        if path.parent.name == "packet" or b"gscope.capture.jit" in path.read_bytes()
    )


def _point_numba_at_cache(source: Path) -> None:
    if not source.is_file():
        return
    folder = _cache_root() / _digest(_with_imports(source))
    try:
        # Private: numba unpickles what it finds here.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return
    cast("Any", numba).config.CACHE_DIR = str(folder)


def _cache_root() -> Path:
    if os.environ.get("NUMBA_CACHE_DIR"):
        return Path(os.environ["NUMBA_CACHE_DIR"])
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "gscope" / "kernels"


def _with_imports(source: Path) -> set[Path]:
    """The file and all files of this package that it imports, at any depth."""
    found: set[Path] = set()
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imports(path)
    return found


@functools.cache
def _imports(source: Path) -> tuple[Path, ...]:
    names = re.findall(
        rb"^from gscope\.capture\.([\w.]+) import", source.read_bytes(), re.MULTILINE
    )
    paths = (_HERE / f"{name.decode().replace('.', '/')}.py" for name in names)
    return tuple(path for path in paths if path.is_file())


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted({path.resolve() for path in (*paths, Path(__file__))}):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
