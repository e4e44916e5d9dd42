"""Captures that only root can read, opened before the process changes to another user.

Each file is held with two descriptors, because a replay reads it while it walks over its times.
Code that opens the file borrows one of them, and closing returns it.
"""

from __future__ import annotations

import io
import os
import resource
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.capture.process.confinement.identity import acting_as

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gscope.capture.process.confinement.identity import Identity

_READERS = 2

_held: dict[str, list[int]] = {}
_statuses: dict[str, os.stat_result] = {}


def hold(paths: Iterable[str], identity: Identity, opener: Callable[[str, int], int]) -> None:
    """Open those of ``paths`` that ``identity`` cannot open.

    Skip those that root cannot open either.

    Args:
        paths: paths exactly as they will be opened.
        identity: the user to which this process, which is root, will change.
        opener: function that opens a path with flags.
    """
    _raise_limit()
    wanted = list(dict.fromkeys(paths))
    with acting_as(identity):
        wanted = [path for path in wanted if not _can_open(path)]
    for path in wanted:
        with suppress(OSError, ValueError):
            first = opener(path, os.O_RDONLY | os.O_CLOEXEC)
            descriptors = _held.setdefault(path, [first])
            _statuses[path] = os.fstat(first)
            if stat.S_ISREG(_statuses[path].st_mode):
                flags = os.O_RDONLY | os.O_CLOEXEC
                descriptors += (opener(path, flags) for _ in range(_READERS - 1))


def status_of(path: str) -> os.stat_result:
    """Return the status of the file at ``path``; of a held file, as it was when it was opened.

    Raises:
        OSError: the file does not exist, or this user may not access its status.
    """
    return _statuses[path] if path in _statuses else os.stat(path)  # noqa: PTH116  # a path as it was given


def borrow(path: str) -> io.FileIO | None:
    """Return the held file at ``path``, at its beginning.

    None if it is not held or all descriptors are in use.
    """
    descriptors = _held.get(path)
    return _HeldFile(descriptors.pop(), descriptors) if descriptors else None


class _HeldFile(io.FileIO):
    """A file whose descriptor returns to the held ones when it is closed."""

    def __init__(self, descriptor: int, owner: list[int]) -> None:
        self._owner: list[int] | None = owner
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.lseek(descriptor, 0, os.SEEK_SET)
        super().__init__(descriptor, closefd=False)

    def close(self) -> None:
        """Return the descriptor; harmless when called twice."""
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.append(self.fileno())
        super().close()


def _can_open(path: str) -> bool:
    # Without opening it: the writer of a named pipe would see a reader come and go.
    return os.access(path, os.R_OK, effective_ids=True)


def _raise_limit() -> None:
    """Raise the limit of open files as far as the system permits."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
