"""Keeps what a running log holds before its consumers let it go.

This is to know afterwards what should have been answered.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from gscope.capture.log.index import INDEX_NAME
from gscope.queries.streams.messages import Batch
from gscope.queries.streams.wire import decode_records

if TYPE_CHECKING:
    from pathlib import Path

PERIOD_S = 0.01


class KeptLog:
    """Hard links to the files of the log in ``folder``.

    They are to every segment, and to every file that was ever the index. A segment that Spark reads
    lives until its step is committed, which takes much longer than ``PERIOD_S``; one whose rows are
    answers themselves may be gone sooner.
    """

    def __init__(self, folder: Path, kept: Path) -> None:
        self._folder = folder
        self._kept = kept
        (kept / "segments").mkdir(parents=True)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def stop(self) -> None:
        """Look a last time."""
        self._is_over.set()
        self._thread.join()

    def rows(self, stream: str) -> list[dict[str, object]]:
        """All rows of a stream that the index ever named."""
        return [
            row
            for path in sorted(batch.path for batch in self._batches(stream))
            for row in pq.read_table(self._kept / path).to_pylist()
        ]

    def tuples(self, stream: str) -> int:
        """How many rows of a stream the index ever named."""
        return sum(batch.rows for batch in self._batches(stream))

    def _batches(self, stream: str) -> set[Batch]:
        named = set()
        for index in self._kept.glob("index-*"):
            records, _ = decode_records(index.read_bytes())
            named |= {
                record
                for record in records
                if isinstance(record, Batch) and record.stream == stream
            }
        return named

    def _follow(self) -> None:
        while not self._is_over.wait(PERIOD_S):
            self._look()
        self._look()

    def _look(self) -> None:
        # Whatever goes away between two lines was not new.
        with suppress(OSError):
            index = self._folder / INDEX_NAME
            self._link(index, self._kept / f"index-{index.stat().st_ino}")
        with suppress(OSError):
            for entry in os.scandir(self._folder / "segments"):
                self._link(
                    self._folder / "segments" / entry.name, self._kept / "segments" / entry.name
                )

    def _link(self, path: Path, link: Path) -> None:
        with suppress(OSError):
            link.hardlink_to(path)
