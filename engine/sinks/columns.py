"""Readable result columns: dotted addresses, times in UTC, escaped payloads.

Each function converts a whole column at once. Conversions that cannot be done in bulk, such as
escapes, are done once for each distinct value.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.sinks.addresses import addresses_as_text
from gscope.engine.sinks.arrow_integers import arrow_integers
from gscope.engine.sinks.parallel import ROWS_AT_ONCE, by_columns
from gscope.engine.sinks.pieces import cut_text
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT
from gscope.queries.streams.texts import as_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.expressions.schema import ColumnSchema, Schema

_READABLE: dict[GsqlType, pa.DataType] = {
    GsqlType.BOOL: pa.bool_(),
    GsqlType.INT: pa.int64(),
    GsqlType.FLOAT: pa.float64(),
    GsqlType.TIMESTAMP: pa.timestamp("ns"),
    GsqlType.INTERVAL: pa.int64(),
}
_SMALL = 1 << 16
_WORTH_A_TABLE = 8
"""Rows for each integer of a range from which a table of the range is made."""

_TABLES = 32
"""Tables of small integers in memory, of about 2 MB each."""


def readable(table: pa.Table, schema: Schema) -> pa.Table:
    """Return ``table`` with the columns of ``schema`` in readable Arrow types.

    INT, FLOAT and BOOL stay numbers and truth values, TIMESTAMP becomes ``timestamp[ns]``, bytes of
    packets stay bytes; IP, MAC and all other STRING become text.
    """
    kinds = {column.name: column for column in schema.columns}
    columns = by_columns(
        lambda name: _readable(flat(table[name]), kinds[name]), table, schema.names
    )
    return pa.table(list(columns), names=list(schema.names))


def readable_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of a ``readable`` table, with GSQL types in the fields' metadata."""
    return pa.schema(
        [
            pa.field(c.name, _arrow_type(c), metadata={"gscope.type": c.type.value})
            for c in schema.columns
        ]
    )


def as_text(column: pa.Array) -> pa.Array:
    """Return a readable column as text: NULL stays NULL, times get a ``Z``, bytes are escaped."""
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_binary(column.type):
        return for_each_distinct(column, lambda value: cut_text(value, escape))
    if pa.types.is_integer(column.type):
        return integers_as_text(column)
    text = pc.cast(column, pa.string())
    if pa.types.is_timestamp(column.type):
        return pc.binary_join_element_wise(text, "Z", "")
    return text


def integers_as_text(column: pa.Array, lead: str = "") -> pa.Array:
    """Return integers as text, each after ``lead``; NULL stays NULL.

    Integers of a short range, as most are, are looked up.
    """
    extent = pc.min_max(column).as_py()
    least, greatest = extent["min"], extent["max"]
    if least is None:
        return pa.nulls(len(column), pa.string())
    if (greatest - least + 1) * _WORTH_A_TABLE <= len(column) and greatest <= MAX_INT:
        return _integers(least, greatest, lead).take(pc.subtract(column, least))
    if least >= 0 and greatest < _SMALL:
        return _small_integers(lead).take(column)
    text = pc.cast(column, pa.string())
    return pc.binary_join_element_wise(lead, text, "") if lead else text


def flat(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array of plain values, copied only if necessary."""
    combined = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        combined = combined.chunk(0) if combined.num_chunks else pa.array([], combined.type)
    if pa.types.is_dictionary(combined.type):
        return combined.dictionary_decode()
    return combined


def escape(value: bytes) -> str:
    r"""Return bytes as text that no other bytes have: UTF-8 where printable, else escapes.

    ``\\`` is a backslash, ``\xNN`` one byte, ``\n``, ``\r`` and ``\t`` are the usual control
    characters, ``\uNNNN`` and ``\UNNNNNNNN`` other characters that are not printable.
    """
    if b"\\" in value:
        value = value.replace(b"\\", b"\\\\")
    text = value.decode("utf-8", errors="backslashreplace")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    if short is not None:
        return short
    code = ord(character)
    if code < 128:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def _arrow_type(column: ColumnSchema) -> pa.DataType:
    if column.is_binary:
        return pa.binary()
    return _READABLE.get(column.type, pa.string())


def _readable(column: pa.Array, schema: ColumnSchema) -> pa.Array | pa.ChunkedArray:
    match schema.type:
        case GsqlType.IP:
            return _addresses(column)
        case GsqlType.STRING if schema.is_binary:
            return pc.cast(as_bytes(column), pa.binary())
        case GsqlType.STRING:
            return for_each_distinct(as_bytes(column), lambda value: cut_text(value, escape))
        case GsqlType.MAC:
            return for_each_distinct(column, lambda value: value.to_bytes(6).hex(":"))
        case GsqlType.TIMESTAMP:
            return pc.cast(pc.cast(column, pa.int64()), pa.timestamp("ns"))
        case GsqlType.INT | GsqlType.INTERVAL:
            return pc.cast(column, pa.int64())
        case _:
            return column


def for_each_distinct(column: pa.Array, text: Callable[..., str]) -> pa.Array:
    """Return ``text`` of each value, computed once for each distinct one; NULL stays NULL."""
    encoded = column.dictionary_encode()
    values = pa.array([text(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return values.take(encoded.indices)


def _addresses(column: pa.Array) -> pa.ChunkedArray:
    """Return the text of addresses, in pieces that stay in a core's cache while they are built."""
    starts = range(0, max(1, len(column)), ROWS_AT_ONCE)
    pieces = [addresses_as_text(column.slice(start, ROWS_AT_ONCE)) for start in starts]
    return pa.chunked_array(pieces)


@lru_cache(_TABLES)
def _small_integers(lead: str) -> pa.Array:
    return _integers(0, _SMALL - 1, lead)


def _integers(least: int, greatest: int, lead: str) -> pa.Array:
    text = pc.cast(arrow_integers(np.arange(greatest - least + 1) + least), pa.string())
    return pc.binary_join_element_wise(lead, text, "") if lead else text


def json_number(column: pa.Array) -> pa.Array:
    """Return floating-point numbers as JSON text, with NULL for NaN and infinities."""
    text = pc.cast(column, pa.string())
    return pc.if_else(pc.is_finite(column), text, pa.scalar(None, pa.string()))
