"""Reading what steps have answered, in order; needs neither Spark nor Java.

A small step is one Arrow file that is in order already. A large one is a folder of Parquet files in the
order of Spark's hash partitions; it is cut into ranges of its first temporal column that fit into memory,
and each range is sorted.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

ROWS_AT_ONCE = 4_000_000
"""Rows sorted at once; a single value of the first column may have more."""


def read_output(
    path: Path, order: Sequence[str] = (), rows_at_once: int = ROWS_AT_ONCE
) -> Iterator[pa.Table]:
    """The rows of a published output, in pieces that fit into memory.

    Args:
        path: of the output.
        order: columns to be in ascending order, NULL first, ``-f`` for a column f in descending order; () for
            any order.
        rows_at_once: see ``ROWS_AT_ONCE``.
    """
    if not path.is_dir():
        with pa.memory_map(str(path)) as source:
            yield pa.ipc.open_file(source).read_all()
        return
    files = sorted(path.glob("*.parquet"))
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    if not rows:
        return
    if not order:
        yield from _row_groups(files)
    elif len(order) == 1 and not order[0].startswith("-") and _is_in_order(files, order[0]):
        # each file holds one value, as the epochs of a merge do: sorting would only cost
        yield from _row_groups(files)
    elif rows <= rows_at_once or order[0].startswith("-"):
        yield _sorted(pa.concat_tables(_row_groups(files), promote_options="permissive"), order)
    else:
        for low, high in _ranges(files, order[0], rows_at_once):
            pieces = [_between(group, order[0], low, high) for group in _row_groups(files)]
            yield _sorted(pa.concat_tables(pieces, promote_options="permissive"), order)


def remove_output(path: Path) -> None:
    """Forget an output that was delivered."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _row_groups(files: Sequence[Path], columns: list[str] | None = None) -> Iterator[pa.Table]:
    for file in files:
        with pq.ParquetFile(file) as parquet:
            for group in range(parquet.num_row_groups):
                yield parquet.read_row_group(group, columns=columns)


def _is_in_order(files: Sequence[Path], column: str) -> bool:
    """Whether each file holds one value of ``column`` alone, and the files are in its order."""
    reached: object = None
    for file in files:
        bounds = [pc.min_max(group[column]).as_py() for group in _row_groups([file], [column])]
        values = {value for bound in bounds for value in bound.values()}
        if len(values) != 1 or None in values:
            return False
        (value,) = values
        if reached is not None and value < reached:
            return False
        reached = value
    return True


def _sorted(table: pa.Table, order: Sequence[str]) -> pa.Table:
    keys = [
        (name.removeprefix("-"), "descending" if name.startswith("-") else "ascending", "at_start")
        for name in order
    ]
    return table.take(pc.sort_indices(table, sort_keys=keys))


def _ranges(
    files: Sequence[Path], column: str, rows_at_once: int
) -> Iterator[tuple[pa.Scalar, pa.Scalar]]:
    """Ranges [low, high] of ``column`` with about ``rows_at_once`` rows each, ascending, NULL first."""
    counted = [
        group.group_by(column).aggregate([([], "count_all")])
        for group in _row_groups(files, [column])
    ]
    counts = pa.concat_tables(counted).group_by(column).aggregate([("count_all", "sum")])
    counts = _sorted(counts, [column])
    values, sizes = counts[column], counts["count_all_sum"].to_pylist()
    first, rows = 0, 0
    for place, size in enumerate(sizes):
        if place > first and rows + size > rows_at_once:
            yield values[first], values[place - 1]
            first, rows = place, 0
        rows += size
    if sizes:
        yield values[first], values[len(sizes) - 1]


def _between(table: pa.Table, column: str, low: pa.Scalar, high: pa.Scalar) -> pa.Table:
    """The rows with low <= column <= high; a NULL bound includes NULL and everything below."""
    values = table[column]
    if not high.is_valid:
        return table.filter(pc.is_null(values))
    below = pc.less_equal(values, high)
    if not low.is_valid:
        return table.filter(pc.or_(pc.is_null(values), pc.fill_null(below, False)))
    return table.filter(pc.and_(below, pc.greater_equal(values, low)))
