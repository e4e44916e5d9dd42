"""Reading what steps have answered; needs neither Spark nor Java."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def read_output(path: Path) -> Iterator[pa.Table]:
    """The rows of a published output, in pieces that fit into memory."""
    if path.is_dir():
        for file in sorted(path.glob("*.parquet")):
            with pq.ParquetFile(file) as parquet:
                for group in range(parquet.num_row_groups):
                    yield parquet.read_row_group(group)
    else:
        with pa.memory_map(str(path)) as source:
            yield pa.ipc.open_file(source).read_all()


def remove_output(path: Path) -> None:
    """Forget an output that was delivered."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
