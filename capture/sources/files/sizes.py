"""How many bytes captures have, before they are opened."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.capture.sources.files.compressed import MAGIC_BYTES, is_compressed
from gscope.capture.sources.files.held import borrow, status_of
from gscope.capture.sources.files.stored import STANDARD_INPUT
from gscope.capture.sources.nfcapd.layout import HEADER_BYTES, is_packed

if TYPE_CHECKING:
    from collections.abc import Sequence


def stored_bytes(paths: Sequence[str]) -> tuple[int, int] | None:
    """Return the bytes of plain and of compressed files.

    None if one of ``paths`` is not a regular file.
    """
    plain = compressed = 0
    for path in paths:
        try:
            # Before it is opened: opening and closing a named pipe would break its writer.
            if path == STANDARD_INPUT or not stat.S_ISREG(status_of(path).st_mode):
                return None
            with borrow(path) or Path(path).open("rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                head = file.read(HEADER_BYTES) or b""
        except (OSError, ValueError):
            return None
        if is_compressed(head[:MAGIC_BYTES]) or is_packed(head):
            compressed += size
        else:
            plain += size
    return plain, compressed
