"""The log of Java and its workers, their standard error, bounded for runs of any duration.

Java holds the file open for appending, so it cannot be renamed. It is copied and truncated instead,
as logrotate's ``copytruncate`` does: lines written in the microseconds between the two are lost. A
pipe would lose nothing, but Java would block on it when this process is slow.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILE_BYTES = 1 << 20
KEPT_FILES = 4


def bound_log(path: Path) -> None:
    """Move the contents of ``path`` to ``path.1`` once it is too large, and so on up to ``path.4``.

    Of a file that has grown far beyond its bound, only the end is kept. The function must be called
    about once a second. On a full disk the old contents are lost, but the bound holds.
    """
    with suppress(OSError):
        if path.stat().st_size < MAX_FILE_BYTES:
            return
        with suppress(OSError):
            _keep(path)
        os.truncate(path, 0)


def _keep(path: Path) -> None:
    kept = [path.with_name(f"{path.name}.{number}") for number in range(1, KEPT_FILES + 1)]
    for older, newer in zip(reversed(kept), reversed(kept[:-1]), strict=False):
        with suppress(FileNotFoundError):
            newer.replace(older)
    with path.open("rb") as file:
        file.seek(-MAX_FILE_BYTES, os.SEEK_END)
        kept[0].write_bytes(file.read(MAX_FILE_BYTES))
