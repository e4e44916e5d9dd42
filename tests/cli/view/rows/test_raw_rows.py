"""Rows by their number, as far as they are kept."""

from __future__ import annotations

import pyarrow as pa

from gscope.cli.view.rows.raw_rows import RawRows


def test_rows_are_found_by_their_number_in_the_answer() -> None:
    raw = RawRows(most=10)
    values: list[int] = []
    for size in (3, 0, 5, 1, 4):
        table = pa.table({"x": pa.array(range(len(values), len(values) + size))})
        raw.take("q", table)
        values += range(len(values), len(values) + size)
    kept = [number for number in values if raw.row("q", number) is not None]
    # Whole tables are let go, once ten rows stay without them.
    assert kept == values[3:]
    for number in kept:
        row = raw.row("q", number)
        assert row is not None
        assert row["x"].to_pylist() == [number]
    assert raw.row("q", len(values)) is None
    assert raw.row("other", 0) is None
