"""Operating system errors of the log as one plain sentence each."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gscope.errors import StreamError
from gscope.queries.os_errors import os_reason

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
        message = f"cannot {doing} {path}: {os_reason(error)}"
        raise StreamError(message) from error


def is_full(error: StreamError) -> bool:
    """Return whether ``error`` says that the disk, or the share of it that we may use, is full."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in _FULL
