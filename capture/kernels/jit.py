"""The only module that imports numba: ``kernel`` compiles a function, ``intrinsic`` LLVM code.

Compiled kernels are stored in a folder named by a hash of the kernel's source file and of all files
of this package that it imports. numba itself watches only the file of a kernel, so that without the
hash a changed helper in another file would leave a stale kernel.

Environment:
    GSCOPE_BOUNDSCHECK: "1" checks every array access in kernels (for tests); such kernels are not
        kept.
    NUMBA_CACHE_DIR: where to keep compiled kernels; by default ``$XDG_CACHE_HOME/gscope/kernels``.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import re
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numba
from numba.core import cgutils as _cgutils
from numba.core import types as _types
from numba.core.caching import FunctionCache as _UntypedFunctionCache
from numba.extending import intrinsic as _numba_intrinsic

from gscope.capture.kernels.disk_cache import mark_used
from gscope.queries.ownership import ensure_private_folder
from gscope.queries.user_cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

# Partly typed in numba; what builds LLVM code is not checkable anyway.
types: Any = _types
cgutils: Any = _cgutils
_FunctionCache: Any = _UntypedFunctionCache
_njit: Any = numba.njit

_log = logging.getLogger(__name__)

_NAMING_FOLDERS = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR")
"""Environment variables that determine where kernels are stored."""

_naming = threading.Lock()

F = TypeVar("F", bound="Callable[..., Any]")

_HERE = Path(__file__).parents[1]
_USES_COMPILER = re.compile(rb"gscope\.capture\.kernels\.(jit|native)\b")
_BOUNDSCHECK = os.environ.get("GSCOPE_BOUNDSCHECK", "") not in ("", "0")


def kernel(function: F) -> F:
    """Compile ``function`` on its first call, or load it if already compiled.

    A kernel releases the GIL while it runs, wraps on integer overflow, and gives inf or nan for a
    float division by zero instead of raising. The result keeps the function's type for type
    checkers.
    """
    return cast("F", _without_copies(_kept(function)))


def unrolled_kernel(function: F) -> F:
    """Return a kernel that is compiled for each constant argument, as the end of a short loop."""
    dispatcher = _kept(function)
    dispatcher.is_unrolled = True
    return cast("F", dispatcher)


def kernel_part(function: F) -> F:
    """Compile ``function`` as a part of the kernels that call it.

    It cannot be called from Python and is not stored itself; a kernel is stored with all its parts.
    """
    part = _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return cast("F", _without_copies(part))


def _compiled(function: Callable[..., Any], **options: bool) -> Any:
    options |= {"nogil": True, "boundscheck": _BOUNDSCHECK}
    return _njit(error_model="numpy", **options)(function)


def _kept(function: Callable[..., Any]) -> Any:
    dispatcher = _compiled(function)
    # Threads import modules at the same time, and numba has one setting for all.
    with _naming:
        if not _BOUNDSCHECK and _point_numba_at_cache(Path(function.__code__.co_filename)):
            # No file holds the source, or numba may write to no folder (a read-only system without
            # a home).
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

    has_saved = False
    """Whether this process has compiled anything."""

    on_miss: ClassVar[Callable[[Path], object] | None] = None
    """Called with the source of a kernel that is about to be compiled."""

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
        if found is None and _KernelCache.on_miss is not None:
            _KernelCache.on_miss(self._source)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        _KernelCache.has_saved = True
        try:
            super().save_overload(sig, data)
        except Exception:
            # An unreadable index is started again; on a full disk nothing is stored.
            with suppress(OSError):
                self.flush()
                super().save_overload(sig, data)


def helper(function: F) -> F:
    """Compile ``function`` for kernels to call; it is not stored, since its file is not ours."""
    return cast("F", _compiled(function))


def intrinsic(codegen: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function for kernels of a numba typing function (see numba's ``intrinsic``)."""
    return cast("Callable[..., Any]", _numba_intrinsic(codegen))


def libc(name: str, result: Any, *arguments: Any) -> Callable[..., int]:
    """Return a function of the C library, callable in kernels only; it waits without the GIL."""
    return cast("Callable[..., int]", _types.ExternalFunction(name, result(*arguments)))


def kernels_folder() -> Path:
    """Return the folder of compiled kernels, which has a folder for each source file.

    Raises:
        OSError: this user has no folder for them.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return Path(os.environ["NUMBA_CACHE_DIR"])
    folder = cache_folder()
    if folder is None:
        message = "no folder for compiled kernels"
        raise OSError(message)
    return folder / "kernels"


def has_compiled() -> bool:
    """Return whether this process has compiled a kernel that was not in the cache."""
    return _KernelCache.has_saved


def note_compiling(source: Path) -> None:
    """Record that this process is about to compile a kernel without numba."""
    _KernelCache.has_saved = True
    if _KernelCache.on_miss is not None:
        _KernelCache.on_miss(source)


def checks_bounds() -> bool:
    """Return whether kernels check every access to an array, which only numba's code does."""
    return _BOUNDSCHECK


@contextmanager
def compiling_reported(on_compile: Callable[[Path], object]) -> Iterator[None]:
    """Call ``on_compile`` with the source of each kernel that is compiled meanwhile.

    Kernels that no folder can keep are compiled without a call.
    """
    _KernelCache.on_miss = on_compile
    try:
        yield
    finally:
        _KernelCache.on_miss = None


@functools.cache
def sources_digest() -> str:
    """Return a hash of all sources of kernels: decoding, compilers, and what uses these."""
    return _digest(
        path
        for path in _HERE.rglob("*.py")
        if path.parent.name in ("packet", "native") or _USES_COMPILER.search(path.read_bytes())
    )


def _point_numba_at_cache(source: Path) -> bool:
    """Let numba store kernels of ``source``; return False if no folder can be trusted.

    numba unpickles what it finds, so nothing is stored in a folder that other users can write to or
    replace.
    """
    folder = _folder_for(source, *(os.environ.get(name) for name in _NAMING_FOLDERS))
    if folder is None:
        return False
    cast("Any", numba).config.CACHE_DIR = folder
    return True


@functools.cache
def _folder_for(source: Path, *_environment: str | None) -> str | None:
    """Return the folder for kernels of ``source``, checked once; None if none can be trusted."""
    if not source.is_file():
        return None
    try:
        folder = ensure_private_folder(kernels_folder() / _digest_with_imports(source))
        # numba creates folders in it by the umask: a group that may write to those must not reach
        # them.
        folder.chmod(0o700)
        mark_used(folder)
    except OSError as error:
        _log.info("cannot cache compiled kernels: %s", error)
        return None
    return str(folder)


@functools.cache
def _digest_with_imports(source: Path) -> str:
    """Return a hash of a file and its imports, as they were when this process imported them."""
    return _digest(_with_imports(source))


def _with_imports(source: Path) -> set[Path]:
    """Return the file and all files of this package that it imports, at any depth."""
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
    names = re.findall(rb"^from gscope\.capture\.([\w.]+) import", _content(source), re.MULTILINE)
    paths = (_HERE / f"{name.decode().replace('.', '/')}.py" for name in names)
    return tuple(path for path in paths if path.is_file())


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted({_resolved(path) for path in (*paths, Path(__file__))}):
        digest.update(path.name.encode() + b"\0" + _content(path))
    return digest.hexdigest()[:16]


@functools.cache
def _resolved(source: Path) -> Path:
    return source.resolve()


@functools.cache
def _content(source: Path) -> bytes:
    """Return the bytes of a source; cached, because most files import the same few."""
    return source.read_bytes()
