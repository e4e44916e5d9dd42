"""Reading the outputs of steps, in order; needs neither Spark nor Java.

The output of a small step is one Arrow file, that of a large step a folder of Parquet files. Files
whose ranges of the first temporal column do not overlap, such as the epochs of a merge, are sorted
one by one; others are cut into ranges that fit into memory. ``engine/sinks/row_order.py`` defines
the order.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gscope.engine.sinks.row_order import in_order
from gscope.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from gscope.queries.plan.row_order import SortKey

ROWS_AT_ONCE = 4_000_000
"""Rows that are sorted at once; more if a single value of the first column has more."""

BYTES_AT_ONCE = 128 << 20
"""Bytes of long rows that are sorted at once, held in memory several times; more, as above."""

_LONG_ROW_BYTES = 1024

_WORTH_SORTING = 65_536
"""Files with fewer rows are sorted together with their neighbours."""


def read_output(
    path: Path,
    order: Sequence[str],
    files: Sequence[str],
    rows_at_once: int = ROWS_AT_ONCE,
    keys: Sequence[SortKey] = (),
    addresses: Collection[str] = (),
) -> Iterator[pa.Table]:
    """Yield the rows of a published output in order, in pieces that fit into memory.

    Args:
        path: the path of the output.
        order: the temporal columns, ``-f`` for a column f in descending order.
        files: if the output is a folder, the names of its files with rows; () if it has none.
        rows_at_once: the number of rows to sort at once; see ``ROWS_AT_ONCE``.
        keys: the columns of ORDER BY, by which rows are ordered after ``order``.
        addresses: the columns to yield as ``fixed_size_binary[16]``, however they are stored: such
            values are moved faster than those of any length.

    Raises:
        EngineError: a file is missing or damaged.
    """
    try:
        if not files and path.is_dir():
            return
        if not files:
            with pa.memory_map(str(path)) as source:
                table = pa.ipc.open_file(source).read_all()
                yield in_order(_with_fixed(table, addresses), order, keys)
            return
        for group in _groups([path / name for name in files], order):
            yield from _of_group(group, order, keys, rows_at_once, addresses)
    except (OSError, pa.ArrowException) as error:
        message = f"cannot read the answer {path}: {error}"
        raise EngineError(message) from error


def _of_group(
    files: Sequence[Path],
    order: Sequence[str],
    keys: Sequence[SortKey],
    rows_at_once: int,
    addresses: Collection[str],
) -> Iterator[pa.Table]:
    """Yield the rows of some files, sorted together."""
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    # STRING values make rows of any length; the files are not compressed.
    size_bytes = sum(file.stat().st_size for file in files)
    if size_bytes > max(BYTES_AT_ONCE, rows * _LONG_ROW_BYTES):
        rows_at_once = min(rows_at_once, max(1, rows * BYTES_AT_ONCE // size_bytes))
    if rows <= rows_at_once or not order or order[0].startswith("-"):
        pieces = [_with_fixed(group, addresses) for group in _row_groups(files)]
        yield in_order(pa.concat_tables(pieces, promote_options="permissive"), order, keys)
        return
    for low, high in _ranges(files, order[0], rows_at_once):
        pieces = [
            _with_fixed(_between(group, order[0], low, high), addresses)
            for group in _row_groups(files)
        ]
        yield in_order(pa.concat_tables(pieces, promote_options="permissive"), order, keys)


def _groups(files: Sequence[Path], order: Sequence[str]) -> list[list[Path]]:
    """Return files in groups that follow each other in the first column of ``order``; at least one.

    All files are one group if their statistics do not give the order.
    """
    if not order or len(files) == 1:
        return [list(files)]
    column, falls = order[0].removeprefix("-"), order[0].startswith("-")
    spans = []
    for file in files:
        span = _span(file, column)
        if span is None:
            return [list(files)]
        spans.append((*span, file))
    groups: list[list[Path]] = []
    reached, held = None, 0
    for least, greatest, rows, file in sorted(spans):
        if reached is None or (least > reached and held >= _WORTH_SORTING):
            groups.append([])
            held = 0
        groups[-1].append(file)
        held += rows
        reached = greatest if reached is None else max(reached, greatest)
    return groups[::-1] if falls else groups


def _span(file: Path, column: str) -> tuple[int, int, int] | None:
    """Return the least and greatest value of a column, and the rows; None if it may hold NULL."""
    metadata = pq.read_metadata(file)
    place = metadata.schema.names.index(column)
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    found = [group.column(place).statistics for group in groups if group.num_rows]
    if not found or not all(each and each.has_min_max and each.null_count == 0 for each in found):
        return None
    return min(each.min for each in found), max(each.max for each in found), metadata.num_rows


def remove_output(path: Path) -> None:
    """Delete an output that was delivered."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _row_groups(files: Sequence[Path], columns: list[str] | None = None) -> Iterator[pa.Table]:
    for file in files:
        with pq.ParquetFile(file) as parquet:
            for group in range(parquet.num_row_groups):
                yield parquet.read_row_group(group, columns=columns)


def _with_fixed(table: pa.Table, addresses: Collection[str]) -> pa.Table:
    """Return ``table`` with addresses of 16 bytes, without their lengths."""
    for place, field in enumerate(table.schema):
        if field.name in addresses and pa.types.is_binary(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.binary(16)))
    return table


def _ranges(
    files: Sequence[Path], column: str, rows_at_once: int
) -> Iterator[tuple[pa.Scalar, pa.Scalar]]:
    """Yield ranges [low, high] of about ``rows_at_once`` rows, ascending, NULL first."""
    counted = [
        group.group_by(column).aggregate([([], "count_all")])
        for group in _row_groups(files, [column])
    ]
    counts = pa.concat_tables(counted).group_by(column).aggregate([("count_all", "sum")])
    counts = in_order(counts.select([column, "count_all_sum"]))
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
    """Return the rows with low <= column <= high; a NULL bound includes NULL and all below."""
    values = table[column]
    if not high.is_valid:
        return table.filter(pc.is_null(values))
    below = pc.less_equal(values, high)
    if not low.is_valid:
        return table.filter(pc.or_(pc.is_null(values), pc.fill_null(below, False)))
    return table.filter(pc.and_(below, pc.greater_equal(values, low)))
