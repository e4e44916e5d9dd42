"""Operating system errors of the log as one plain sentence each."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gscope.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


@contextmanager
def plain_errors(doing: str, path: Path) -> Iterator[None]:
    """Raise an ``OSError`` of the body as ``StreamError("cannot <doing> <path>: <reason>")``."""
    try:
        yield
    except OSError as error:
        # Arrow raises OSError too, with the number set and a text of several sentences.
        reason = os.strerror(error.errno) if error.errno else str(error)
        message = f"cannot {doing} {path}: {reason[:1].lower()}{reason[1:]}"
        raise StreamError(message) from error


def is_full(error: StreamError) -> bool:
    """Whether ``error`` says that the disk, or the share of it that we may use, is full."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in _FULL
