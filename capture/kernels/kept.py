"""Where compiled kernels are kept, and the hashes by which a changed source gets another place.

A compiled kernel depends on its source file and on all files of this package that the file imports.

Environment:
    NUMBA_CACHE_DIR: where to keep compiled kernels; by default ``$XDG_CACHE_HOME/gscope/kernels``.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from llvmlite import __version__ as _llvmlite_version

from gscope.capture.kernels.disk_cache import mark_used
from gscope.queries.ownership import ensure_private_folder
from gscope.queries.user_cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

_log = logging.getLogger(__name__)

_NAMING_FOLDERS = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR")
"""Environment variables that determine where kernels are stored."""

_HERE = Path(__file__).parents[1]
_USES_COMPILER = re.compile(rb"gscope\.capture\.kernels\.(jit|native|language)\b")


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


def folder_of(source: Path, *, is_native: bool) -> Path | None:
    """Return the folder for kernels of a source file; None if none can be trusted.

    Both compilers load what they find, so nothing is stored in a folder that other users can write
    to or replace.

    Args:
        source: the file with the kernels.
        is_native: whether they are compiled without numba, by sources of this package.
    """
    return _folder_of(source, is_native, *(os.environ.get(name) for name in _NAMING_FOLDERS))


@functools.cache
def sources_digest() -> str:
    """Return a hash of all sources of kernels: decoding, compilers, and what uses these."""
    return _digest(
        path
        for path in _HERE.rglob("*.py")
        if path.parent.name in ("packet", "native", "language")
        or _USES_COMPILER.search(path.read_bytes())
    )


@functools.cache
def digest_with_imports(source: Path) -> str:
    """Return a hash of a file and its imports, as they were when this process imported them."""
    return _digest(_with_imports(source))


@functools.cache
def _folder_of(source: Path, is_native: bool, *_environment: str | None) -> Path | None:
    """Return the folder for kernels of ``source``, checked once."""
    if not source.is_file():
        return None
    try:
        digest = _native_digest(source) if is_native else digest_with_imports(source)
        folder = ensure_private_folder(kernels_folder() / digest)
        # numba creates folders in it by the umask: a group that may write to those must not reach
        # them.
        folder.chmod(0o700)
        mark_used(folder)
    except OSError as error:
        _log.info("cannot cache compiled kernels: %s", error)
        return None
    return folder


def _native_digest(source: Path) -> str:
    """Return a hash for native kernels of a source: all sources of kernels have one."""
    if source.is_relative_to(_HERE):
        return sources_digest()
    return hashlib.sha256(sources_digest().encode() + _content(source)).hexdigest()[:16]


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
    digest = hashlib.sha256(_llvmlite_version.encode())
    for path in sorted({_resolved(path) for path in (*paths, *_COMPILER)}):
        digest.update(path.name.encode() + b"\0" + _content(path))
    return digest.hexdigest()[:16]


@functools.cache
def _resolved(source: Path) -> Path:
    return source.resolve()


@functools.cache
def _content(source: Path) -> bytes:
    """Return the bytes of a source; cached, because most files import the same few."""
    return source.read_bytes()


_COMPILER = tuple(
    _HERE / "kernels" / name
    for name in ("jit.py", "numba_kernels.py", "kept.py", "language/intrinsic_code.py")
)
"""Sources on which every compiled kernel depends, without importing them at the top."""
