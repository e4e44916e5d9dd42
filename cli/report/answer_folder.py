"""A report of the files of a run: CSV, NDJSON, Parquet and Arrow, as ``-w DIR`` writes them.

Parquet and Arrow files name the GSQL type of each column; those of text are inferred. What the
query was is not in the files. So nothing is summed there, and silence is a gap. The keys are the
first columns with which no two rows of one time are the same.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from gscope.cli.config.time_style import TimeStyle
from gscope.cli.report.clock_text import clock_texts
from gscope.cli.report.contents import (
    MOST_ROWS,
    AnsweredRows,
    Facts,
    Report,
    ReportAnswer,
    ReportColumn,
    TimeAxis,
)
from gscope.cli.report.facts import duration_text
from gscope.cli.sinks.replay_files import FILE_KINDS
from gscope.cli.sinks.table_times import time_formatter
from gscope.errors import GscopeError, UsageError
from gscope.queries.expressions.schema import ClockUnit, ColumnSchema
from gscope.queries.expressions.types import GsqlType
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_SECOND_NS = 1_000_000_000
_MOST_TEXT = 256 << 20
"""The most bytes of a text file that are read, from its beginning."""

_TIME = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{9}Z$"
_ADDRESS = r"^(\d{1,3}(\.\d{1,3}){3}|[0-9a-f:]*:[0-9a-f:]*(\d{1,3}(\.\d{1,3}){3})?)$"
_PART = re.compile(r"(?P<query>.+)-\d{8}T\d{6}Z-\d{6,}")
_DIGITS = re.compile(r"(\d+)")
_PLOTTED = (GsqlType.INT, GsqlType.FLOAT, GsqlType.INTERVAL)


def report_of_folder(folder: Path, style: TimeStyle) -> Report:
    """Return a report of all answers in a folder.

    Raises:
        UsageError: the folder has no answers.
        GscopeError: a file cannot be read.
    """
    found = _files(folder)
    if not found:
        message = (
            f"{folder} has no answers: files that end in {', '.join(f'.{k}' for k in FILE_KINDS)}"
        )
        raise UsageError(message)
    answers = []
    for query, paths in found.items():
        answers.append(_answered(query, paths, style))
    entries = [("folder", str(folder)), ("files", str(sum(len(each) for each in found.values())))]
    facts = Facts(
        f"Report of {folder.resolve().name}", (*entries, *_span(answers, style)), (), (), (), style
    )
    return Report(facts, tuple(answers))


def _files(folder: Path) -> Mapping[str, list[Path]]:
    """Return the files of each answer, in the order of their names."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix[1:] not in FILE_KINDS or path.name.startswith(".") or not path.is_file():
            continue
        part = _PART.fullmatch(path.stem)
        found.setdefault(part["query"] if part else path.stem, []).append(path)
    if paths := _in_partitions(folder):
        found.setdefault(folder.resolve().name, []).extend(paths)
    for below in sorted(path for path in folder.iterdir() if path.is_dir()):
        is_answer = not below.name.startswith(".") and not _is_partition(below)
        if is_answer and (paths := _in_partitions(below)):
            found.setdefault(below.name, []).extend(paths)
    return found


def _in_partitions(folder: Path) -> list[Path]:
    """Return the Parquet files in folders by time (``--partition-by``), in the order of time."""
    paths = (path for each in folder.iterdir() if _is_partition(each) for path in each.rglob("*"))
    kept = (
        path
        for path in paths
        if path.suffix == ".parquet"
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    return sorted(kept, key=_numbered)


def _is_partition(path: Path) -> bool:
    return path.is_dir() and "=" in path.name and not path.name.startswith(".")


def _numbered(path: Path) -> list[tuple[int, str]]:
    """Return a key that sorts numbers in names by their value: hour 9 before hour 10."""
    return [(int(each), "") if each.isdigit() else (-1, each) for each in _DIGITS.split(str(path))]


def _answered(query: str, paths: Sequence[Path], style: TimeStyle) -> AnsweredRows:
    tables: list[pa.Table] = []
    total = 0
    marks: list[str] = []
    for path in paths:
        try:
            table, rows, is_cut = _read(path, MOST_ROWS - sum(t.num_rows for t in tables))
        except (OSError, pa.ArrowException, ValueError) as error:
            reason = os_reason(error) if isinstance(error, OSError) else "it holds something else"
            message = f"cannot read {path}: {reason}"
            raise GscopeError(message) from error
        if is_cut:
            marks.append(
                f"{path.name} is longer than {_MOST_TEXT >> 20} MiB; the rest is not read."
            )
        tables.append(table)
        total += rows
    try:
        whole = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        message = f"the files of {query} have different columns"
        raise GscopeError(message) from error
    answered = AnsweredRows(_answer(query, whole, style), marks=tuple(marks))
    answered.add(whole)
    answered.total = total
    return answered


def _read(path: Path, most: int) -> tuple[pa.Table, int, bool]:
    """Return at most ``most`` rows of a file, how many it has, and whether more are not read."""
    match path.suffix:
        case ".parquet":
            file = pq.ParquetFile(path)
            table = pa.Table.from_batches(_first(file.iter_batches(), most), file.schema_arrow)
            return table, file.metadata.num_rows, False
        case ".arrow":
            with pa.OSFile(str(path)) as opened, pa.ipc.open_file(opened) as reader:
                batches = [reader.get_batch(n) for n in range(reader.num_record_batches)]
                rows = sum(batch.num_rows for batch in batches)
                return pa.Table.from_batches(_first(batches, most), reader.schema), rows, False
        case _:
            lines, is_cut = _lines(path)
            table = _csv(lines) if path.suffix == ".csv" else _ndjson(lines)
            return table.slice(0, max(0, most)), table.num_rows, is_cut


def _first(batches: Iterable[pa.RecordBatch], most: int) -> list[pa.RecordBatch]:
    found: list[pa.RecordBatch] = []
    for batch in batches:
        if most <= 0:
            break
        found.append(batch.slice(0, most))
        most -= found[-1].num_rows
    return found


def _lines(path: Path) -> tuple[bytes, bool]:
    """Return the whole lines at the beginning of a text file, and whether there are more.

    A run may be writing the last line.
    """
    with path.open("rb") as file:
        data = file.read(_MOST_TEXT + 1)
    is_cut = len(data) > _MOST_TEXT
    return data[: data.rfind(b"\n", 0, _MOST_TEXT) + 1], is_cut


def _csv(lines: bytes) -> pa.Table:
    parse = pyarrow.csv.ParseOptions(newlines_in_values=False, ignore_empty_lines=False)
    options = {
        "null_values": [""],
        "strings_can_be_null": True,
        "quoted_strings_can_be_null": False,
    }
    names = pyarrow.csv.read_csv(io.BytesIO(lines[: lines.find(b"\n") + 1]), parse_options=parse)
    kinds = {name: pa.string() for name in names.column_names}
    texts = pyarrow.csv.read_csv(
        io.BytesIO(lines),
        pyarrow.csv.ReadOptions(block_size=max(1 << 20, _longest_line(lines) + 1)),
        parse,
        pyarrow.csv.ConvertOptions(column_types=kinds, **options),
    )
    return pa.table([_typed(texts[name]) for name in texts.column_names], texts.column_names)


def _longest_line(lines: bytes) -> int:
    return max((len(line) for line in lines.split(b"\n")), default=0)


def _typed(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values of a column of CSV: truth values, integers, numbers, times or text."""
    if _all_match(texts, "^(true|false)$"):
        return pc.equal(texts, "true")
    numbers = ((r"^-?\d{1,19}$", pa.int64()), (r"^-?(\d.*|inf)$|^nan$", pa.float64()))
    for pattern, kind in numbers:
        if _all_match(texts, pattern):
            try:
                return pc.cast(texts, kind)
            except pa.ArrowInvalid:
                continue
    return _times(texts)


def _times(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts as times if all of them are."""
    if not _all_match(texts, _TIME):
        return texts
    try:
        return pc.cast(pc.cast(texts, pa.timestamp("ns", "UTC")), pa.timestamp("ns"))
    except pa.ArrowInvalid:
        return texts


def _all_match(texts: pa.ChunkedArray, pattern: str) -> bool:
    matches = pc.match_substring_regex(texts, pattern)
    return bool(pc.all(matches).as_py()) and texts.null_count < len(texts)


def _ndjson(lines: bytes) -> pa.Table:
    if not lines.strip():
        return pa.table({})
    # Times stay text until all of them are seen: an answer may have texts that look like times.
    options = pyarrow.json.ReadOptions(block_size=len(lines) + 1)
    found = pyarrow.json.read_json(io.BytesIO(lines), options)
    columns = []
    for name in found.column_names:
        column = found[name]
        if pa.types.is_timestamp(column.type):
            column = pc.cast(column, pa.timestamp("ns"))
        elif pa.types.is_null(column.type):
            column = pc.cast(column, pa.string())
        columns.append(_times(column) if pa.types.is_string(column.type) else column)
    return pa.table(columns, found.column_names)


def _answer(query: str, table: pa.Table, style: TimeStyle) -> ReportAnswer:
    columns = []
    for field in table.schema:
        kind = _kind(field, table[field.name])
        clock = _clock(table[field.name]) if kind is GsqlType.TIMESTAMP else None
        times = time_formatter(ColumnSchema(field.name, kind, clock=clock), style)
        columns.append(ReportColumn(field.name, kind, times))
    moments = [c.name for c in columns if c.type is GsqlType.TIMESTAMP]
    axis = TimeAxis(moments[0], 1, None) if moments else None
    keys = None if axis is None else _keys(columns, table, axis.column)
    measures = [c.name for c in columns if c.type in _PLOTTED and c.name not in (keys or ())]
    return ReportAnswer(
        query,
        tuple(columns),
        None if keys is None else axis,
        keys or (),
        tuple(measures),
        has_order=True,
    )


def _kind(field: pa.Field, column: pa.ChunkedArray) -> GsqlType:
    """Return the type of a column: what the file says, otherwise what its values look like."""
    named = (field.metadata or {}).get(b"gscope.type", b"").decode(errors="replace")
    if named in set(GsqlType):
        return GsqlType(named)
    if pa.types.is_boolean(field.type):
        return GsqlType.BOOL
    if pa.types.is_timestamp(field.type):
        return GsqlType.TIMESTAMP
    if pa.types.is_integer(field.type):
        return GsqlType.INT
    if pa.types.is_floating(field.type):
        return GsqlType.FLOAT
    is_address = pa.types.is_string(field.type) and _all_match(column, _ADDRESS)
    return GsqlType.IP if is_address else GsqlType.STRING


def _clock(column: pa.ChunkedArray) -> ClockUnit:
    """Return how times count: whole seconds if all of them are."""
    times = np.asarray(pc.fill_null(pc.cast(column, pa.int64()), 0))
    return ClockUnit(1, 1 if (times % _SECOND_NS).any() else _SECOND_NS)


def _keys(columns: Sequence[ReportColumn], table: pa.Table, axis: str) -> tuple[str, ...] | None:
    """Return the columns that tell rows of one time apart; None if all columns do not."""
    texts = [c.name for c in columns if c.type not in _PLOTTED and c.name != axis]
    texts = [name for name in texts if not pa.types.is_timestamp(table.schema.field(name).type)]
    codes = _codes(table[axis])
    for name in texts:
        codes = _codes(pa.array(codes * (table.num_rows + 1) + _codes(table[name])))
    keys = list(texts)
    numbers = iter(c.name for c in columns if c.type is GsqlType.INT)
    while len(np.unique(codes)) < table.num_rows:
        number = next(numbers, None)
        if number is None:
            return None
        keys.append(number)
        codes = _codes(pa.array(codes * (table.num_rows + 1) + _codes(table[number])))
    return tuple(name for name in table.column_names if name in keys)


def _codes(column: pa.ChunkedArray | pa.Array) -> NDArray[np.int64]:
    """Return a number for each value, the same for the same values."""
    chunk = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(chunk, pa.ChunkedArray):
        chunk = chunk.chunk(0) if chunk.num_chunks else pa.array([], column.type)
    encoded = chunk.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64)


def _span(answers: Sequence[AnsweredRows], style: TimeStyle) -> Iterator[tuple[str, str]]:
    """Yield the first and the last time of all rows."""
    extents = []
    for rows in answers:
        if rows.answer.axis is not None and rows.kept:
            extent = pc.min_max(pc.cast(rows.column(rows.answer.axis.column), pa.int64())).as_py()
            if extent["min"] is not None:
                extents.append((extent["min"], extent["max"]))
    if not extents:
        return
    first, last = min(low for low, _ in extents), max(high for _, high in extents)
    is_whole = not (first % _SECOND_NS or last % _SECOND_NS)
    texts = clock_texts([first, last], style, _SECOND_NS if is_whole else None)
    yield "first time in answers", texts[0]
    yield "last time in answers", texts[1]
    if style is not TimeStyle.EPOCH:
        yield "from the first to the last", duration_text(last - first)
