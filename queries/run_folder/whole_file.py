"""Files that are replaced as a whole, so that a reader never sees half of one."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_HERE, _RENAME_EXCHANGE = -100, 2
"""Constants of ``linux/fcntl.h`` and ``linux/fs.h``."""

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def replace_file(path: Path, text: str, *, is_durable: bool = False) -> None:
    """Write ``text`` to a file beside ``path`` and rename it to ``path``.

    The file is written by its owner only, and not through a link: the folder may belong to a
    process with fewer rights than this one. A leftover of a crash has the suffix ``.new``.

    Args:
        path: the file to create or replace.
        text: all of its contents, written as UTF-8.
        is_durable: whether the file and its name are on disk before this returns.

    Raises:
        OSError: the file cannot be written; what was at ``path`` is still there.
    """
    staged = _staged(path, text, is_durable=is_durable)
    staged.replace(path)
    if is_durable:
        _sync_folder(path.parent)


def exchange_file(path: Path, text: str) -> None:
    """Replace a file as ``replace_file`` does, but never wait for the disk.

    ext4 writes a file to disk before it replaces another, so that a power failure leaves one of
    them. That waits for whatever the disk has to do: 0.1 s while segments are written. Two files
    that only exchange their names are not written. After a power failure the file may be empty.

    Args:
        path: the file to create or replace.
        text: all of its contents, written as UTF-8.

    Raises:
        OSError: the file cannot be written; what was at ``path`` is still there.
    """
    staged = _staged(path, text)
    if _exchange(staged, path):
        staged.unlink(missing_ok=True)
    else:
        staged.replace(path)


def _staged(path: Path, text: str, *, is_durable: bool = False) -> Path:
    staged = path.with_suffix(".new")
    staged.unlink(missing_ok=True)
    with os.fdopen(os.open(staged, _NEW_FILE, 0o644), "w", encoding="utf-8") as file:
        file.write(text)
        if is_durable:
            file.flush()
            os.fsync(file.fileno())
    return staged


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two files; return False if there is only one, or it is not possible."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    names = os.fsencode(one), os.fsencode(other)
    return bool(rename(_HERE, names[0], _HERE, names[1], _RENAME_EXCHANGE) == 0)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
