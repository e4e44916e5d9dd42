"""CSV and NDJSON, written from whole columns."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from gscope.engine.sinks.columns import (
    as_text,
    flat,
    for_each_distinct,
    integers_as_text,
    json_number,
)
from gscope.engine.sinks.parallel import by_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SPECIAL = b'",\r\n'
_PLAIN_JSON = bytes(each for each in range(0x20, 0x7F) if each not in b'"\\')
"""Characters that JSON has as they are."""

_MANY_ROWS = 8192
"""Rows from which integers are looked up with the names of their columns."""


def csv_header(names: list[str]) -> bytes:
    """Return the header line of a CSV file."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(names)
    return line.getvalue().encode()


def write_csv(table: pa.Table, file: BinaryIO) -> None:
    """Write the rows of a readable table as CSV (RFC 4180, bare newlines).

    NULL is an empty field, and the empty text is ``""``. Only values that need quotes have them.
    """
    for lines in by_pieces(_csv_lines, table):
        file.write(lines)


def write_ndjson(table: pa.Table, file: BinaryIO) -> None:
    """Write a readable table as one JSON object a line; NULL is ``null``."""
    for lines in by_pieces(_ndjson_lines, table):
        file.write(_content(lines))


def ndjson_texts(table: pa.Table) -> pa.Array:
    """Return the lines that ``write_ndjson`` writes for a table with columns, as one text each."""
    return _ndjson_lines(table)


def with_name(table: pa.Table, query: str) -> pa.Table:
    """Return ``table`` with the name of its result as the first column."""
    name = pa.array([query]).take(pa.nulls(table.num_rows, pa.int32()).fill_null(0))
    return table.add_column(0, "query", name)


def write_in_turn(
    tables: Mapping[str, pa.Table], turns: Iterable[tuple[str, int]], file: BinaryIO
) -> None:
    """Write rows of several readable tables as NDJSON in turn.

    Args:
        tables: the tables, by the name of the result, with which each line begins.
        turns: for each turn, the name of a result and how many of its next rows to write.
        file: the file to write.
    """
    lines = {query: _ndjson_lines(with_name(each, query)) for query, each in tables.items()}
    begins = dict.fromkeys(lines, 0)
    for query, count in turns:
        file.write(_content(lines[query].slice(begins[query], count)))
        begins[query] += count


def _csv_lines(piece: pa.Table) -> memoryview:
    columns = [_printable(flat(column)) for column in piece.columns]
    has_quotes = [_is_special(column) for column in columns]
    cells = [
        for_each_distinct(column, _quoted) if is_special else _csv(column)
        for column, is_special in zip(columns, has_quotes, strict=True)
    ]
    if any(has_quotes):
        texts = [pc.fill_null(pc.cast(cell, pa.string()), "") for cell in cells]
        return _text(_between(texts, ["", *[","] * (len(texts) - 1)], "\n"))
    sink = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(
        include_header=False, quoting_style="none", batch_size=max(1, piece.num_rows)
    )
    pyarrow.csv.write_csv(pa.table(cells, names=piece.column_names), sink, options)
    return memoryview(sink.getvalue())


def _ndjson_lines(piece: pa.Table) -> pa.Array:
    names = [json.dumps(name) + ": " for name in piece.column_names]
    leads = ["{" + names[0], *(", " + name for name in names[1:])]
    parts = [
        part
        for lead, column in zip(leads, piece.columns, strict=True)
        for part in _json_parts(lead, flat(column))
    ]
    return pc.binary_join_element_wise(*parts, "}\n", "")


def _json_parts(lead: str, column: pa.Array) -> list[pa.Array | str]:
    """Return texts that together are ``lead`` and the JSON text of each value of a column."""
    if pa.types.is_integer(column.type) and len(column) >= _MANY_ROWS:
        return [pc.fill_null(integers_as_text(column, lead), f"{lead}null")]
    if pa.types.is_boolean(column.type) or pa.types.is_integer(column.type):
        return [lead, pc.fill_null(as_text(column), "null")]
    if pa.types.is_floating(column.type):
        return [lead, pc.fill_null(json_number(column), "null")]
    text = as_text(column)
    if bytes(_content(text)).translate(None, _PLAIN_JSON):
        return [lead, pc.fill_null(for_each_distinct(text, json.dumps), "null")]
    quoted = pc.binary_join_element_wise(f'{lead}"', text, '"', "")
    return [pc.fill_null(quoted, f"{lead}null")]


def _printable(column: pa.Array) -> pa.Array:
    """Return a readable column, with bytes as text."""
    return as_text(column) if pa.types.is_binary(column.type) else column


def _between(cells: list[pa.Array], leads: list[str], end: str) -> list[pa.Array | str]:
    parts: list[pa.Array | str] = []
    for lead, cell in zip(leads, cells, strict=True):
        parts += [lead, cell]
    return [*parts, end]


def _text(parts: list[pa.Array | str]) -> memoryview:
    """Return the bytes of all rows, each row being the concatenation of ``parts``."""
    return _content(pc.binary_join_element_wise(*parts, ""))


def _content(texts: pa.Array) -> memoryview:
    """Return the concatenated bytes of all values of a text array."""
    _, offsets, content = texts.buffers()
    if content is None:
        return memoryview(b"")
    ends = memoryview(offsets).cast("i")
    return memoryview(content)[ends[texts.offset] : ends[texts.offset + len(texts)]]


def _csv(column: pa.Array) -> pa.Array:
    """Return a readable column without special values, as text where this module formats it."""
    if pa.types.is_timestamp(column.type) or pa.types.is_integer(column.type):
        return as_text(column)
    return column


def _is_special(column: pa.Array) -> bool:
    """Return whether a value needs quotes."""
    if not pa.types.is_string(column.type):
        return False
    if pc.any(pc.equal(column, "")).as_py():
        return True
    content = np.frombuffer(_content(column), np.uint8)
    return any(bool((content == character).any()) for character in _SPECIAL)


def _quoted(value: str) -> str:
    if not value or any(character in value for character in _SPECIAL.decode()):
        return '"' + value.replace('"', '""') + '"'
    return value
