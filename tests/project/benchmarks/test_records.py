"""Figures as CSV."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.records import write_records

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Row:
    """Of a benchmark."""

    name: str
    count: int
    seconds: float


def test_rows_are_written_under_their_names(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rows.csv"
    write_records([Row("a, b", 2_000_000_000, 1 / 3), Row("c", 0, 2.0)], path)
    assert path.read_text() == 'name,count,seconds\n"a, b",2000000000,0.333333\nc,0,2\n'
