"""The traces of a run on disk: one JSON object a line, in two files of bounded size.

They can be read during the run and after a crash: an incomplete line is skipped.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

BUDGET_BYTES = 4 << 20
"""The size of both files together: about two thousand traces."""

_CURRENT, _OLDER = "traces.ndjson", "traces.older.ndjson"


class TraceBook:
    """Writes traces to ``folder``, which it creates; for one thread.

    A full disk loses traces, but never answers.
    """

    def __init__(self, folder: Path, budget_bytes: int = BUDGET_BYTES) -> None:
        self._folder = folder
        self._limit_bytes = budget_bytes // 2
        self._file: IO[bytes] | None = None
        self._size_bytes = 0

    def add(self, trace: Mapping[str, Any]) -> None:
        """Write one trace."""
        line = json.dumps(trace, separators=(",", ":")).encode() + b"\n"
        with suppress(OSError):
            file = self._opened(len(line))
            # Unbuffered, so that it survives this process.
            file.write(line)
            self._size_bytes += len(line)

    def close(self) -> None:
        """Close the file; harmless when called twice."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self, wanted_bytes: int) -> IO[bytes]:
        path = self._folder / _CURRENT
        if self._file is not None and self._size_bytes + wanted_bytes > self._limit_bytes:
            self.close()
            path.replace(self._folder / _OLDER)
        if self._file is None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
            self._size_bytes = self._file.tell()
            if self._size_bytes and not _ends_with_line(path):
                self._file.write(b"\n")
        return self._file


def read_traces(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield all traces in ``folder``, oldest first."""
    for name in (_OLDER, _CURRENT):
        try:
            lines = (folder / name).read_bytes().splitlines()
        except OSError:
            continue
        for line in lines:
            with suppress(ValueError):
                trace = json.loads(line)
                if isinstance(trace, dict):
                    yield trace


def _ends_with_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"
