"""Rows that a relay holds: in memory, in files, and where the disk is full."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gscope.capture.relay.held_rows import BATCH_BYTES, HeldRows, Shelf
from gscope.errors import StreamError

ROWS = pa.table({"n": pa.array(range(1000), pa.int64())})
SIZE = ROWS.nbytes + BATCH_BYTES


def test_rows_beyond_the_limit_are_in_files_until_they_are_discarded(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "rows", 4 * SIZE, 2 * SIZE)
    held = [HeldRows(shelf, ROWS, ()) for _ in range(4)]
    assert len(list((tmp_path / "rows").iterdir())) == 2
    assert all(each.read().equals(ROWS) for each in held)
    assert shelf.is_full
    for each in (*held, held[0], held[3]):
        each.discard()
    assert list((tmp_path / "rows").iterdir()) == []
    assert (shelf.held_bytes, shelf.is_full) == (0, False)
    # What was released in memory is free for others.
    HeldRows(shelf, ROWS, ())
    HeldRows(shelf, ROWS, ())
    assert list((tmp_path / "rows").iterdir()) == []


def test_many_batches_of_one_row_fill_the_shelf(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "rows", 100 * BATCH_BYTES)
    for _ in range(100):
        HeldRows(shelf, ROWS.slice(0, 1), ())
    assert shelf.is_full


def test_files_of_an_earlier_process_are_deleted(tmp_path: Path) -> None:
    HeldRows(Shelf(tmp_path, 1, 0), ROWS, ())
    assert list(tmp_path.iterdir())
    Shelf(tmp_path, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_neither_a_file_nor_a_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(_table: Any, path: str, **_how: Any) -> None:
        Path(path).write_bytes(b"a part")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyarrow.feather.write_feather", write)
    shelf = Shelf(tmp_path, 1, 0)
    with pytest.raises(StreamError, match="no space left"):
        HeldRows(shelf, ROWS, ())
    assert shelf.held_bytes == 0
    assert list(tmp_path.iterdir()) == []
