"""Figures of a benchmark as a CSV file, one dataclass for each row."""

from __future__ import annotations

import csv
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from _typeshed import DataclassInstance


def write_records(rows: Sequence[DataclassInstance], path: Path) -> None:
    """Write at least one row, all of one class; numbers that are not whole get six digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [each.name for each in fields(rows[0])])
        writer.writeheader()
        writer.writerows({k: _text(v) for k, v in asdict(row).items()} for row in rows)


def _text(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
