"""CSV and NDJSON, made from whole columns."""

from __future__ import annotations

import json
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from gscope.engine.sinks.columns import as_text, json_number

_ROWS_AT_ONCE = 65_536


def write_csv(table: pa.Table, file: BinaryIO, *, has_header: bool) -> None:
    """Write a readable table as CSV: RFC 4180 with bare newlines, NULL as nothing."""
    shown = pa.table(
        [
            as_text(column.combine_chunks()) if pa.types.is_timestamp(column.type) else column
            for column in table.columns
        ],
        names=table.column_names,
    )
    options = pyarrow.csv.WriteOptions(include_header=has_header, quoting_style="needed")
    pyarrow.csv.write_csv(shown, file, options)


def write_ndjson(table: pa.Table, file: BinaryIO) -> None:
    """Write a readable table as one JSON object a line; NULL as ``null``."""
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        if batch.num_rows:
            file.write(_lines(batch))


def _lines(batch: pa.RecordBatch) -> memoryview:
    parts: list[pa.Array | str] = []
    for index, name in enumerate(batch.schema.names):
        parts.append(("{" if index == 0 else ", ") + json.dumps(name) + ": ")
        parts.append(pc.fill_null(_json(batch.column(index)), "null"))
    lines = pc.binary_join_element_wise(*parts, "}\n", "")
    offsets, data = lines.buffers()[1], lines.buffers()[2]
    ends = memoryview(offsets).cast("i")
    return memoryview(data)[ends[lines.offset] : ends[lines.offset + len(lines)]]


def _json(column: pa.Array) -> pa.Array:
    """Each value of a readable column as JSON text."""
    if pa.types.is_boolean(column.type) or pa.types.is_integer(column.type):
        return pc.cast(column, pa.string())
    if pa.types.is_floating(column.type):
        return json_number(column)
    encoded = as_text(column).dictionary_encode()
    quoted = pa.array([json.dumps(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return quoted.take(encoded.indices)
