"""STRING columns in their two forms.

They are bytes, as in the log and in answers, and text, as Spark holds them. Spark's strings are
Unicode, so each byte is one character there (ISO 8859-1). Each distinct value is converted once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

_CODING = "iso-8859-1"


def as_bytes(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return a STRING column as bytes; a column of bytes as it is, also if stored by number."""
    if not _is_text(column.type):
        return column
    return _each(column, pa.binary(), lambda text: text.encode(_CODING))


def as_text(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return a STRING column in the form in which Spark emits and accepts it."""
    if _is_text(column.type):
        return column.cast(pa.string())
    return _each(column, pa.string(), lambda value: value.decode(_CODING))


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _each(
    column: pa.Array | pa.ChunkedArray, kind: pa.DataType, convert: Callable[..., bytes | str]
) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = [None if v is None else convert(v) for v in coded.dictionary.to_pylist()]
    return pa.array(values, kind).take(coded.indices)
