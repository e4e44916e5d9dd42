"""Files that are replaced as a whole, so that a reader never sees half of one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

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
    staged = path.with_suffix(".new")
    staged.unlink(missing_ok=True)
    with os.fdopen(os.open(staged, _NEW_FILE, 0o644), "w", encoding="utf-8") as file:
        file.write(text)
        if is_durable:
            file.flush()
            os.fsync(file.fileno())
    staged.replace(path)
    if is_durable:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
