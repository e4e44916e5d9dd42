"""CSV and NDJSON, made from whole columns."""

from __future__ import annotations

import csv
import io
import json
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from gscope.engine.sinks.columns import as_text, for_each_distinct, json_number

_ROWS_AT_ONCE = 65_536
_SPECIAL = '[",\r\n]'
_NOT_PLAIN_JSON = r'["\\]|[^ -~]'


def csv_header(names: list[str]) -> bytes:
    """The heading line of a CSV file."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(names)
    return line.getvalue().encode()


def write_csv(table: pa.Table, file: BinaryIO) -> None:
    """Write the rows of a readable table as CSV (RFC 4180, bare newlines); NULL is nothing.

    Only values that need quotes get them.
    """
    columns = [_csv(column.combine_chunks()) for column in table.columns]
    plain = pa.table(columns, names=table.column_names)
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
    if any(_has_quotes(column) for column in columns):
        for batch in plain.to_batches(max_chunksize=_ROWS_AT_ONCE):
            cells = [pc.fill_null(pc.cast(column, pa.string()), "") for column in batch.columns]
            file.write(_joined(_between(cells, ["", *[","] * (len(cells) - 1)], "\n")))
    else:
        pyarrow.csv.write_csv(plain, file, options)


def write_ndjson(table: pa.Table, file: BinaryIO) -> None:
    """Write a readable table as one JSON object a line; NULL is ``null``."""
    names = [json.dumps(name) + ": " for name in table.column_names]
    leads = ["{" + names[0], *(", " + name for name in names[1:])]
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        if batch.num_rows:
            cells = [pc.fill_null(_json(column), "null") for column in batch.columns]
            file.write(_joined(_between(cells, leads, "}\n")))


def _between(cells: list[pa.Array], leads: list[str], end: str) -> list[pa.Array | str]:
    parts: list[pa.Array | str] = []
    for lead, cell in zip(leads, cells, strict=True):
        parts += [lead, cell]
    return [*parts, end]


def _joined(parts: list[pa.Array | str]) -> memoryview:
    """The bytes of all rows, each row being the concatenation of ``parts``."""
    lines = pc.binary_join_element_wise(*parts, "")
    ends = memoryview(lines.buffers()[1]).cast("i")
    return memoryview(lines.buffers()[2])[ends[lines.offset] : ends[lines.offset + len(lines)]]


def _csv(column: pa.Array) -> pa.Array:
    """A readable column for a CSV file: text where there is something to quote or to format."""
    if pa.types.is_timestamp(column.type):
        return as_text(column)
    if pa.types.is_string(column.type) and _is_special(column):
        return for_each_distinct(column, _quoted)
    return column


def _is_special(column: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring_regex(column, _SPECIAL)).as_py())


def _has_quotes(column: pa.Array) -> bool:
    return pa.types.is_string(column.type) and _is_special(column)


def _quoted(value: str) -> str:
    if any(character in value for character in ',"\r\n'):
        return '"' + value.replace('"', '""') + '"'
    return value


def _json(column: pa.Array) -> pa.Array:
    """Each value of a readable column as JSON text."""
    if pa.types.is_boolean(column.type) or pa.types.is_integer(column.type):
        return pc.cast(column, pa.string())
    if pa.types.is_floating(column.type):
        return json_number(column)
    text = as_text(column)
    if pc.any(pc.match_substring_regex(text, _NOT_PLAIN_JSON)).as_py():
        return for_each_distinct(text, json.dumps)
    return pc.binary_join_element_wise('"', text, '"', "")
