"""Keeps what compiled kernels take on the disk within a bound: what was used longest ago goes first.

Two folders are looked after: ``kernels/<digest>/<place>/*.nb[ic]`` is numba's, for one file of sources each
(``capture/kernels/jit.py``), and ``lfta/lfta_<hash>.py`` are generated sources (``capture/lfta/cache.py``). Names of any other form
are nobody's business here, nor is what a link points at. Other processes may use the same folders at any moment: one
that misses a file compiles it anew.
"""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_BYTES = 512 << 20
"""What compiled kernels and their sources may take: those of some 500 query sets."""

IN_USE_NS = 3_600 * 1_000_000_000
"""What was used within the last hour is kept whatever it takes: whoever loads it may not be done."""

_KERNELS = re.compile(r"[0-9a-f]{16}")
_PLACE = re.compile(r"\w+_[0-9a-f]{40}")
_COMPILED = re.compile(r".+\.nb[ic](\.tmp\.[0-9a-f]+)?")
_SOURCE = re.compile(r"(lfta_[0-9a-f]{24})\.py")
_BYTE_CODE = re.compile(r"(lfta_[0-9a-f]{24})\..+\.pyc(\.\d+)?")
_UNFINISHED = re.compile(r"(tmp|lfta_[0-9a-f]{24}\.)\w+\.tmp")
_BYTE_CODE_FOLDER = "__pycache__"

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def mark_used(path: Path) -> None:
    """Note that a folder of kernels or a source is used now; a file keeps the time of its last change.

    Raises:
        OSError: it is not there, or not ours.
    """
    status = path.stat()
    is_file = stat.S_ISREG(status.st_mode)
    now = time.time_ns()
    # Byte code is stamped with the time of a source's last change.
    os.utime(path, ns=(now, status.st_mtime_ns if is_file else now))


def prune(kernels: Path, sources: Path, now_ns: int, max_bytes: int = MAX_BYTES) -> int:
    """Remove what was used longest ago until both folders together take ``max_bytes`` at most.

    Args:
        kernels: the folder of numba's folders.
        sources: the folder of generated sources.
        now_ns: what was used an hour before is kept.
        max_bytes: sizes of files are counted, as they take blocks of the disk.

    Returns:
        The bytes that were set free.
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
    """What is kept or removed as a whole: a folder of kernels, or a source with its byte code.

    Attributes:
        folder: where ``name`` stands.
        is_rubbish: whether it goes even where there is room.
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
        byte_code: dict[str, int] = {}
        with suppress(OSError), _opened(_BYTE_CODE_FOLDER, root) as folder:
            for name, status in _listed(folder):
                if found := _BYTE_CODE.fullmatch(name):
                    byte_code[found[1]] = byte_code.get(found[1], 0) + _disk_bytes(status)
        for name, status in _listed(root):
            if not stat.S_ISREG(status.st_mode):
                continue
            used_ns = _used_ns(status)
            if found := _SOURCE.fullmatch(name):
                size = _disk_bytes(status) + byte_code.pop(found[1], 0)
                yield _Entry(sources, name, size, used_ns)
            elif _UNFINISHED.fullmatch(name):
                yield _Entry(sources, name, _disk_bytes(status), used_ns, is_rubbish=True)


def _remove(entry: _Entry) -> int:
    """Remove all of an entry that is of our making, unless it has been used since; the bytes set free."""
    with _opened(entry.folder) as root:
        status = os.stat(entry.name, dir_fd=root, follow_symlinks=False)
        if _used_ns(status) != entry.used_ns:
            return 0
        if stat.S_ISDIR(status.st_mode):
            _remove_kernels(root, entry.name)
        else:
            os.unlink(entry.name, dir_fd=root)
            _remove_byte_code(root, entry.name.removesuffix(".py"))
    return entry.size_bytes


def _used_ns(status: os.stat_result) -> int:
    # Whoever looks through folders is noted as a reader of theirs.
    if stat.S_ISDIR(status.st_mode):
        return status.st_mtime_ns
    return max(status.st_atime_ns, status.st_mtime_ns)


def _remove_byte_code(root: int, stem: str) -> None:
    with suppress(OSError), _opened(_BYTE_CODE_FOLDER, root) as folder:
        for name, _ in _listed(folder):
            found = _BYTE_CODE.fullmatch(name)
            if found and found[1] == stem:
                os.unlink(name, dir_fd=folder)


def _remove_kernels(root: int, name: str) -> None:
    # Indexes go first: without one, nobody asks for what it lists.
    files = sorted(_compiled_files(root, name), key=lambda file: ".nbi" not in file[1])
    with _opened(name, root) as kernels:
        for place in sorted({place for place, _, _ in files} | set(_places(kernels))):
            with suppress(OSError):
                with _opened(place, kernels) as folder:
                    for of, file, _ in files:
                        if of == place:
                            with suppress(FileNotFoundError):
                                os.unlink(file, dir_fd=folder)
                os.rmdir(place, dir_fd=kernels)
    with suppress(OSError):
        os.rmdir(name, dir_fd=root)


def _compiled_files(root: int, name: str) -> list[tuple[str, str, int]]:
    """Numba's files of an entry: their folder, name and size."""
    files = []
    with _opened(name, root) as kernels:
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
    """Names in a folder with what they are themselves, should they be links."""
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
    """A folder that stays the one that was looked at, whatever is put in its place; never a link below ``root``."""
    flags = _FOLDER_FLAGS if root is not None else _FOLDER_FLAGS & ~os.O_NOFOLLOW
    descriptor = os.open(folder, flags, dir_fd=root)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
