"""What Java and its workers write to standard error, kept in a folder of the run: bounded, however long it lasts.

Java holds the file open to append, so it cannot be renamed away. It is copied and emptied instead, as logrotate's
``copytruncate`` does: what is written between the two is lost, which is microseconds, and nothing has to be read
from a pipe, on which Java would wait if this process were slow.
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
    """Move what ``path`` holds to ``path.1`` if it has grown too large, and so on up to ``path.4``.

    Of a file that has grown far beyond its bound meanwhile the end is kept. To be called every second or so. A disk
    that is full costs what would be kept, never the bound.
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
