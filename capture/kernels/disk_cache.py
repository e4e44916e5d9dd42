"""Bounds the disk space of compiled kernels; those unused for the longest time are removed first.

There are two folders. In ``kernels``, ``<digest>/<place>/*.nb[ic]`` are numba's files, for one
source file each, and ``<digest>/<name>.<processor>.o`` is machine code of native kernels
(``capture/kernels/kept.py``). In ``lfta``, ``lfta_<hash>.py`` are generated sources, with their
machine code for each kind of processor in ``lfta/lfta_<hash>.<processor>.o``, that of LFTA n in
``lfta/lfta_<hash>.<processor>.<n>.o``, and unoptimised code in files ending in ``.quick.o``
(``capture/lfta/native_kernel.py``). Other names are left alone, and links are not followed. Other
processes may use the same folders at any moment: one that misses a file compiles it again.
"""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_BYTES = 512 << 20
"""Limit of compiled kernels and their sources: those of some 500 query sets."""

IN_USE_NS = 3_600 * 1_000_000_000
"""Files used within the last hour are kept whatever their size: a process may still be loading
them."""

_KERNELS = re.compile(r"[0-9a-f]{16}")
_PLACE = re.compile(r"\w+_[0-9a-f]{40}")
_COMPILED = re.compile(r".+\.nb[ic](\.tmp\.[0-9a-f]+)?")
_NATIVE = re.compile(r"[\w.]+\.([0-9a-f]{16}\.o|\w+\.tmp)")
_STEM = re.compile(r"lfta_[0-9a-f]{24}")
_SOURCE = re.compile(r"(lfta_[0-9a-f]{24})\.py")
_MACHINE_CODE = re.compile(r"(lfta_[0-9a-f]{24})\.[0-9a-f]{16}(\.\d+)?(\.quick)?\.o")
_BYTE_CODE = re.compile(r"(lfta_[0-9a-f]{24})\..+\.pyc(\.\d+)?")
_UNFINISHED = re.compile(r"(tmp|lfta_[0-9a-f]{24}\.)\w+\.tmp")
_BYTE_CODE_FOLDER = "__pycache__"
_HERE = "."

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def mark_used(path: Path) -> None:
    """Record that a folder of kernels or a source is used now; a file keeps its modification time.

    Raises:
        OSError: it does not exist, or belongs to another user.
    """
    status = path.stat()
    is_file = stat.S_ISREG(status.st_mode)
    now = time.time_ns()
    # Byte code is stamped with the time of a source's last change.
    os.utime(path, ns=(now, status.st_mtime_ns if is_file else now))


def prune(kernels: Path, sources: Path, now_ns: int, max_bytes: int = MAX_BYTES) -> int:
    """Remove the entries unused for longest until both folders take at most ``max_bytes``.

    Args:
        kernels: the folder of numba's folders.
        sources: the folder of generated sources.
        now_ns: current time; entries used within the hour before are kept.
        max_bytes: limit of the disk blocks that files occupy.

    Returns:
        The number of bytes freed.
    """
    entries = [*_kernel_entries(kernels), *_source_entries(sources)]
    entries.sort(key=lambda entry: entry.used_ns)
    excess = sum(entry.size_bytes for entry in entries) - max_bytes
    freed = 0
    for entry in entries:
        if entry.used_ns > now_ns - IN_USE_NS or (freed >= excess and not entry.is_rubbish):
            continue
        with suppress(OSError):
            freed += _remove(entry)
    return freed


@dataclass(frozen=True, slots=True)
class _Entry:
    """A unit that is kept or removed.

    It is a folder of kernels, or a source with what was compiled of it.

    Attributes:
        folder: folder of ``name``.
        name: name of a folder of kernels or of a source; without ``.py`` if the source is missing.
        is_rubbish: whether it is removed even if there is room.
    """

    folder: Path
    name: str
    size_bytes: int
    used_ns: int
    is_rubbish: bool = False


def _kernel_entries(kernels: Path) -> Iterator[_Entry]:
    with suppress(OSError), _opened(kernels) as root:
        for name, status in _listed(root):
            if _KERNELS.fullmatch(name) and stat.S_ISDIR(status.st_mode):
                with suppress(OSError):
                    size = sum(size for _, _, size in _compiled_files(root, name))
                    yield _Entry(kernels, name, size, _used_ns(status))


def _source_entries(sources: Path) -> Iterator[_Entry]:
    with suppress(OSError), _opened(sources) as root:
        compiled: dict[str, list[os.stat_result]] = {}
        with suppress(OSError), _opened(_BYTE_CODE_FOLDER, root) as folder:
            for name, status in _listed(folder):
                if found := _BYTE_CODE.fullmatch(name):
                    compiled.setdefault(found[1], []).append(status)
        files = _listed(root)
        for name, status in files:
            if found := _MACHINE_CODE.fullmatch(name):
                compiled.setdefault(found[1], []).append(status)
        for name, status in files:
            if not stat.S_ISREG(status.st_mode):
                continue
            used_ns = _used_ns(status)
            if found := _SOURCE.fullmatch(name):
                size = sum(map(_disk_bytes, (status, *compiled.pop(found[1], ()))))
                yield _Entry(sources, name, size, used_ns)
            elif _UNFINISHED.fullmatch(name):
                yield _Entry(sources, name, _disk_bytes(status), used_ns, is_rubbish=True)
        # A process was killed while it removed them.
        for stem, statuses in compiled.items():
            size = sum(map(_disk_bytes, statuses))
            yield _Entry(sources, stem, size, max(map(_used_ns, statuses)), is_rubbish=True)


def _remove(entry: _Entry) -> int:
    """Remove our files of an entry unless it was used meanwhile; return the bytes freed."""
    with _opened(entry.folder) as root:
        if _STEM.fullmatch(entry.name):
            if _exists(f"{entry.name}.py", root):
                return 0
            _remove_compiled(root, entry.name)
            return entry.size_bytes
        status = os.stat(entry.name, dir_fd=root, follow_symlinks=False)
        if _used_ns(status) != entry.used_ns:
            return 0
        if stat.S_ISDIR(status.st_mode):
            _remove_kernels(root, entry.name)
        else:
            os.unlink(entry.name, dir_fd=root)
            _remove_compiled(root, entry.name.removesuffix(".py"))
    return entry.size_bytes


def _used_ns(status: os.stat_result) -> int:
    # Listing a folder updates its access time.
    if stat.S_ISDIR(status.st_mode):
        return status.st_mtime_ns
    return max(status.st_atime_ns, status.st_mtime_ns)


def _exists(name: str, root: int) -> bool:
    try:
        os.stat(name, dir_fd=root, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _remove_compiled(root: int, stem: str) -> None:
    """Remove what was compiled of a source."""
    _remove_all(root, _MACHINE_CODE, stem)
    with suppress(OSError), _opened(_BYTE_CODE_FOLDER, root) as folder:
        _remove_all(folder, _BYTE_CODE, stem)


def _remove_all(folder: int, names: re.Pattern[str], stem: str) -> None:
    """Remove the files whose names match and begin with ``stem``."""
    for name, _ in _listed(folder):
        found = names.fullmatch(name)
        if found and found[1] == stem:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)


def _remove_kernels(root: int, name: str) -> None:
    # Indexes are removed first: without one, the files that it lists are not looked up.
    files = sorted(_compiled_files(root, name), key=lambda file: ".nbi" not in file[1])
    with _opened(name, root) as kernels:
        for place in sorted({_HERE, *(place for place, _, _ in files), *_places(kernels)}):
            with suppress(OSError):
                with _opened(place, kernels) as folder:
                    for of, file, _ in files:
                        if of == place:
                            with suppress(FileNotFoundError):
                                os.unlink(file, dir_fd=folder)
                if place != _HERE:
                    os.rmdir(place, dir_fd=kernels)
    with suppress(OSError):
        os.rmdir(name, dir_fd=root)


def _compiled_files(root: int, name: str) -> list[tuple[str, str, int]]:
    """Return the files of an entry: folder, name and size."""
    files = []
    with _opened(name, root) as kernels:
        files += [
            (_HERE, file, _disk_bytes(status))
            for file, status in _listed(kernels)
            if _NATIVE.fullmatch(file) and stat.S_ISREG(status.st_mode)
        ]
        for place in _places(kernels):
            with suppress(OSError), _opened(place, kernels) as folder:
                files += [
                    (place, file, _disk_bytes(status))
                    for file, status in _listed(folder)
                    if _COMPILED.fullmatch(file) and stat.S_ISREG(status.st_mode)
                ]
    return files


def _places(kernels: int) -> list[str]:
    return [
        name
        for name, status in _listed(kernels)
        if _PLACE.fullmatch(name) and stat.S_ISDIR(status.st_mode)
    ]


def _listed(folder: int) -> list[tuple[str, os.stat_result]]:
    """Return the names in a folder with their status; links are not followed."""
    listed = []
    with os.scandir(folder) as found:
        for each in found:
            with suppress(OSError):
                listed.append((each.name, each.stat(follow_symlinks=False)))
    return listed


def _disk_bytes(status: os.stat_result) -> int:
    return status.st_blocks * 512


@contextmanager
def _opened(folder: Path | str, root: int | None = None) -> Iterator[int]:
    """Yield an open folder, so that it cannot be replaced; never a link below ``root``."""
    flags = _FOLDER_FLAGS if root is not None else _FOLDER_FLAGS & ~os.O_NOFOLLOW
    descriptor = os.open(folder, flags, dir_fd=root)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
