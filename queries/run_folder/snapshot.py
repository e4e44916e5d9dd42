"""Snapshot files: the counters of a process of a run, for others to read.

A snapshot is one JSON object in one file, replaced as a whole, so that a reader never sees half of
one. It is for people and monitoring: a snapshot that cannot be written (the disk is full) is left
out, and the process goes on; readers see its age by its time.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gscope.queries.run_folder.whole_file import exchange_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

INTERVAL_S = 1.0
"""The least time between two snapshots, in seconds."""


class SnapshotFile:
    """Writes the snapshots of one process; for one thread at a time.

    Args:
        path: the path of the file, in a folder of the run.
        monotonic: the clock, in seconds.
    """

    def __init__(self, path: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._written_s: float | None = None
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, exist_ok=True)

    @property
    def is_due(self) -> bool:
        """Whether the last snapshot is at least ``INTERVAL_S`` old, or none was written."""
        return self._written_s is None or self._monotonic() - self._written_s >= INTERVAL_S

    def write(self, value: Mapping[str, Any]) -> None:
        """Replace the file."""
        self._written_s = self._monotonic()
        with suppress(OSError):
            exchange_file(self._path, json.dumps(value, separators=(",", ":")))


def read_snapshot(path: Path) -> dict[str, Any] | None:
    """Return the snapshot in ``path``; None if it is missing or invalid."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
