"""Snapshot files: how one process of a run tells others where it stands.

A snapshot is one JSON object in one file, replaced as a whole, so that a reader never sees half of one. It is made
for people and monitoring: a snapshot that cannot be written (a full disk) is left out, for it is no reason to stop
answering; readers see by its time how old it is.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gscope.queries.run_folder.whole_file import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

INTERVAL_S = 1.0
"""A snapshot is not replaced more often."""


class SnapshotFile:
    """Writes the snapshots of one process; for one thread at a time.

    Args:
        path: of the file, in a folder of the run.
        monotonic: seconds.
    """

    def __init__(self, path: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._written_s: float | None = None
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, exist_ok=True)

    @property
    def is_due(self) -> bool:
        """Whether the last one is at least ``INTERVAL_S`` old."""
        return self._written_s is None or self._monotonic() - self._written_s >= INTERVAL_S

    def write(self, value: Mapping[str, Any]) -> None:
        """Replace the file."""
        self._written_s = self._monotonic()
        with suppress(OSError):
            replace_file(self._path, json.dumps(value, separators=(",", ":")))


def read_snapshot(path: Path) -> dict[str, Any] | None:
    """The snapshot in ``path``; None if there is none, or what is there is no snapshot."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
