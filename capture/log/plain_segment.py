"""Segments of fixed-width columns, written from the memory of the rows without encoder or copy.

Plain values of columns without NULL are the bytes that Arrow has in memory already; what Parquet
wants besides are a page header in front of each column, a word on where a nullable column has NULL,
and a footer. So rows can leave while they are still in a near cache, each portion as a row group of
one page a column.
https://parquet.apache.org/docs/file-format/
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from gscope.capture.log.thrift import (
    Field,
    encode,
    i32,
    i32s,
    i64,
    struct,
    structs,
    text,
    texts,
    varint,
    zigzag,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_Bytes = Any
"""What a file can be written from: bytes or an Arrow buffer."""

_MAGIC = b"PAR1"
_REQUIRED, _OPTIONAL = 0, 1
_UNCOMPRESSED = 0
_DICTIONARY_PAGE = 2
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_BYTE_ARRAY, _FIXED = 6, 7

_TYPES = {pa.int32(): 1, pa.int64(): 2, pa.float64(): 5, pa.binary(16): _FIXED}
_CONSTANT = pa.dictionary(pa.int32(), pa.binary())
"""A column of one word, as the name of the interface."""


def is_number(field: pa.Field) -> bool:
    """Return whether a column can be written so that does not consist of one word."""
    return field.type in _TYPES


def is_plain(batch: pa.RecordBatch) -> bool:
    """Return whether batches like this one can be written so."""
    return all(
        is_number(field)
        or (not field.nullable and field.type == _CONSTANT and len(column.dictionary) == 1)
        for field, column in zip(batch.schema, batch.columns, strict=True)
    )


class _Group(NamedTuple):
    """A row group: its beginning, and for each column the bytes of the two parts from ``pages``."""

    begin: int
    rows: int
    pages: list[tuple[int, int]]


class PlainSegment:
    """A segment that grows.

    Args:
        path: the file, which must not exist yet.
        schema: of all batches, which are ``is_plain``.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.size_bytes = 0
        self.rows = 0
        self._schema = schema
        self._columns = [_column(field) for field in schema]
        self._groups: list[_Group] = []
        self._write([_MAGIC], os.O_CREAT | os.O_EXCL)

    def add(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Write rows as a row group; the batches are not referred to afterwards.

        Raises:
            OSError: not writable or no space; the file is of no use any more.
        """
        rows = sum(batch.num_rows for batch in batches)
        parts: list[_Bytes] = []
        pages = []
        columns = zip(*(batch.columns for batch in batches), strict=True)
        for column, pieces in zip(self._columns, columns, strict=True):
            head, bodies = column.pages(pieces, rows)
            pages.append((len(head), sum(map(len, bodies))))
            parts += (head, *bodies)
        self._groups.append(_Group(self.size_bytes, rows, pages))
        self._write(parts)
        self.rows += rows

    def finish(self) -> None:
        """Write the footer.

        Raises:
            OSError: not writable or no space; the file is of no use any more.
        """
        root = encode(i32(3, _REQUIRED), text(4, "schema"), i32(5, len(self._schema)))
        footer = encode(
            i32(1, 2),
            structs(2, [root, *map(_element, self._schema)]),
            i64(3, self.rows),
            structs(4, map(self._row_group, self._groups)),
            text(6, "gscope version 1.0 (build 0)"),
        )
        self._write([footer, len(footer).to_bytes(4, "little"), _MAGIC])

    def _row_group(self, group: _Group) -> bytes:
        begin = group.begin
        chunks = []
        for column, (first, second) in zip(self._columns, group.pages, strict=True):
            chunks.append(column.chunk(begin, group.rows, first + second, first))
            begin += first + second
        return encode(structs(1, chunks), i64(2, begin - group.begin), i64(3, group.rows))

    def _write(self, parts: Sequence[_Bytes], flags: int = 0) -> None:
        # Opened each time: there may be more growing segments than a process may have files open.
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | flags, 0o600)
        try:
            for portion in _portions(parts):
                self._write_all(descriptor, portion)
        finally:
            os.close(descriptor)

    def _write_all(self, descriptor: int, parts: list[_Bytes]) -> None:
        while parts:
            written = os.writev(descriptor, parts)
            self.size_bytes += written
            while parts and written >= len(parts[0]):
                written -= len(parts.pop(0))
            if written:
                parts[0] = memoryview(parts[0])[written:]


PORTION_BYTES = 64 * 1024
"""Most that is written by one call. For more the kernel takes larger pieces of memory for its
cache, which a virtual machine is likely to have given back to its host: 98 MB took 20 to 40 ms
in portions up to this, and 90 to 300 ms beyond."""

_MAX_PARTS = 1024
"""Linux's IOV_MAX."""


def _portions(parts: Iterable[_Bytes]) -> Iterator[list[_Bytes]]:
    """Yield ``parts`` in lists that one call can write, those that are too large cut."""
    portion: list[_Bytes] = []
    room = PORTION_BYTES
    for part in parts:
        rest = memoryview(part)
        while len(rest) > room or len(portion) == _MAX_PARTS:
            yield [*portion, rest[:room]]
            rest = rest[room:]
            portion, room = [], PORTION_BYTES
        portion.append(rest)
        room -= len(rest)
    yield portion


class _Plain:
    """A column whose values stand in the file as they do in memory.

    What is the same for all its row groups is encoded once: there are thousands of them.
    """

    def __init__(self, field: pa.Field) -> None:
        self._width = field.type.bit_width // 8
        self._head = _chunk_head(field, [_PLAIN, _RLE])

    def pages(self, pieces: Sequence[pa.Array], rows: int) -> tuple[_Bytes, list[_Bytes]]:
        """Return the header of the one page, and its values."""
        width = self._width
        bodies = [
            memoryview(values.buffers()[1])[
                values.offset * width : (values.offset + len(values)) * width
            ]
            for values in pieces
        ]
        return _data_header(rows * width, rows, _PLAIN), bodies

    def chunk(self, begin: int, rows: int, size: int, _first: int) -> bytes:
        """Return the ColumnChunk of pages that begin at ``begin``."""
        return b"".join((self._head, _sizes(rows, size), _BEGIN, zigzag(begin), _END))


class _Nullable(_Plain):
    """The same where NULL is allowed: a bit for each row comes first, or one for all of them."""

    def pages(self, pieces: Sequence[pa.Array], rows: int) -> tuple[_Bytes, list[_Bytes]]:
        """Return the header of the one page with these bits, and its values."""
        nulls = sum(values.null_count for values in pieces)
        if nulls:
            is_value = [_is_value(values) for values in pieces]
            run = varint(-(-rows // 8) << 1 | 1) + _bits(np.concatenate(is_value))
            bodies = [
                self._words(values)[kept].view(np.uint8).data
                for values, kept in zip(pieces, is_value, strict=True)
            ]
        else:
            # One run of rows that have a value.
            run = varint(rows << 1) + b"\1"
            _, bodies = super().pages(pieces, rows)
        levels = len(run).to_bytes(4, "little") + run
        size = len(levels) + (rows - nulls) * self._width
        return _data_header(size, rows, _PLAIN) + levels, bodies

    def _words(self, values: pa.Array) -> NDArray[Any]:
        """Return the values as numbers of their width, those that are NULL included."""
        words = np.frombuffer(values.buffers()[1], f"V{self._width}")
        return words[values.offset : values.offset + len(values)]


def _is_value(values: pa.Array) -> NDArray[np.bool_]:
    """Return for each row whether it is not NULL."""
    bits = values.buffers()[0]
    if bits is None:
        return np.ones(len(values), np.bool_)
    end = values.offset + len(values)
    every = np.unpackbits(np.frombuffer(bits, np.uint8), count=end, bitorder="little")
    return every[values.offset :].view(np.bool_)


def _bits(is_value: NDArray[np.bool_]) -> bytes:
    return np.packbits(is_value, bitorder="little").tobytes()


class _Constant:
    """A column of one word."""

    def __init__(self, field: pa.Field) -> None:
        self._head = _chunk_head(field, [_PLAIN, _RLE, _RLE_DICTIONARY])

    def pages(self, pieces: Sequence[pa.DictionaryArray], rows: int) -> tuple[_Bytes, list[_Bytes]]:
        """Return a dictionary page with the word, and a data page that is one run of its number."""
        (word,) = pieces[0].dictionary.to_pylist()
        entry = len(word).to_bytes(4, "little") + word
        details = struct(7, i32(1, 1), i32(2, _PLAIN))
        dictionary = _page_header(_DICTIONARY_PAGE, len(entry), details) + entry
        # The width of the numbers in bits, then the run: its length, doubled, and the number in
        # whole bytes.
        run = b"\1" + varint(rows << 1) + b"\0"
        return dictionary, [_data_header(len(run), rows, _RLE_DICTIONARY) + run]

    def chunk(self, begin: int, rows: int, size: int, first: int) -> bytes:
        """Return the ColumnChunk of pages from ``begin`` on; ``first`` bytes are the dictionary."""
        data, dictionary = zigzag(begin + first), zigzag(begin)
        return b"".join(
            (self._head, _sizes(rows, size), _BEGIN, data, _DICTIONARY_BEGIN, dictionary, _END)
        )


def _column(field: pa.Field) -> _Plain | _Constant:
    if field.type == _CONSTANT:
        return _Constant(field)
    return _Nullable(field) if field.nullable else _Plain(field)


# Field headers of a ColumnMetaData behind its field 4, and what ends it and the ColumnChunk it is
# in.
_VALUES = _SIZE = b"\x16"
_BEGIN = _DICTIONARY_BEGIN = b"\x26"
_END = b"\0\0"


def _chunk_head(field: pa.Field, encodings: Sequence[int]) -> bytes:
    """Return the ColumnChunk up to field 4 of its ColumnMetaData: the same for all row groups."""
    details = (
        i32(1, _physical(field)),
        i32s(2, encodings),
        texts(3, [field.name]),
        i32(4, _UNCOMPRESSED),
    )
    whole = encode(i64(2, 0), struct(3, *details))
    return whole.removesuffix(_END)


def _sizes(rows: int, size: int) -> bytes:
    encoded = zigzag(size)
    return b"".join((_VALUES, zigzag(rows), _SIZE, encoded, _SIZE, encoded))


@functools.lru_cache(maxsize=64)
def _data_header(size: int, values: int, encoding: int) -> bytes:
    written, count = zigzag(size), zigzag(values)
    return b"".join((_PAGE, written, _SAME, written, _COUNT, count, _HEADER_ENDS[encoding]))


# A PageHeader of a data page around its sizes and its number of values. Its levels, of which a
# required column has none, are runs.
_PAGE, _SAME, _COUNT = b"\x15\x00\x15", b"\x15", b"\x2c\x15"
_HEADER_ENDS = {
    encoding: b"\x15" + zigzag(encoding) + b"\x15\x06\x15\x06\0\0"
    for encoding in (_PLAIN, _RLE_DICTIONARY)
}


def _page_header(type_: int, size: int, details: Field) -> bytes:
    return encode(i32(1, type_), i32(2, size), i32(3, size), details)


def _element(field: pa.Field) -> bytes:
    """Return the SchemaElement."""
    physical = _physical(field)
    length = [i32(2, field.type.byte_width)] if physical == _FIXED else []
    repetition = _OPTIONAL if field.nullable else _REQUIRED
    return encode(i32(1, physical), *length, i32(3, repetition), text(4, field.name))


def _physical(field: pa.Field) -> int:
    return _TYPES.get(field.type, _BYTE_ARRAY)
