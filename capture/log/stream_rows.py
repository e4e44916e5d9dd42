"""Rows of other hosts as tables of one schema, checked before anything else looks at them.

Daemons store integers as narrow as their kernels have them, and a peer may send anything. So each
table is brought into the one schema that follows from the LFTA alone, or refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from gscope.errors import StreamError
from gscope.queries.expressions.types import GsqlType
from gscope.queries.streams.messages import Extent

if TYPE_CHECKING:
    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.plan.program import Lfta

ARROW_TYPES = {
    GsqlType.BOOL: pa.bool_(),
    GsqlType.INT: pa.int64(),
    GsqlType.FLOAT: pa.float64(),
    GsqlType.STRING: pa.binary(),
    GsqlType.IP: pa.binary(16),
    GsqlType.MAC: pa.int64(),
    GsqlType.TIMESTAMP: pa.int64(),
    GsqlType.INTERVAL: pa.int64(),
    GsqlType.NULL: pa.bool_(),
}
"""The Arrow type of each type of GSQL in a relay."""


def relay_schema(lfta: Lfta) -> pa.Schema:
    """Return the Arrow schema of the rows of ``lfta`` in a relay."""
    return pa.schema(
        [
            pa.field(column.name, ARROW_TYPES[column.type], column.is_nullable)
            for column in lfta.stream_schema.columns
        ]
    )


def conformed(table: pa.Table, lfta: Lfta) -> pa.Table:
    """Return rows that another host sent in the schema of ``lfta``, in one chunk.

    Raises:
        StreamError: they are not rows of this LFTA.
    """
    schema = relay_schema(lfta)
    if set(table.column_names) != set(schema.names) or table.num_columns != len(schema):
        message = (
            f"invalid rows of {lfta.name}: expected the columns {', '.join(schema.names)}, "
            f"got {', '.join(map(str, table.column_names[:100]))!r:.400}"
        )
        raise StreamError(message)
    whole = table.combine_chunks()
    columns = [
        _conformed(_values(whole[column.name]), column, schema.field(column.name), lfta)
        for column in lfta.stream_schema.columns
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _values(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _conformed(values: pa.Array, column: ColumnSchema, field: pa.Field, lfta: Lfta) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    is_narrow = pa.types.is_signed_integer(values.type) and pa.types.is_int64(field.type)
    if values.type != field.type and not is_narrow:
        message = (
            f"invalid rows of {lfta.name}: expected {column.name} as {field.type}, "
            f"got {str(values.type)!r:.100}"
        )
        raise StreamError(message)
    if values.null_count and not column.is_nullable:
        message = f"invalid rows of {lfta.name}: {column.name} is NULL, which it cannot be"
        raise StreamError(message)
    return values.cast(field.type)


def extents_of(table: pa.Table, lfta: Lfta) -> tuple[Extent, ...]:
    """Return the extents of the temporal columns of ``lfta``, in the order of its schema.

    A column without a value has the extent 0 to 0.
    """
    return tuple(
        _extent(table, column.name)
        for column in lfta.schema.temporal
        if pa.types.is_int64(ARROW_TYPES[column.type])
    )


def _extent(table: pa.Table, column: str) -> Extent:
    found = pc.min_max(table[column])
    least, greatest = found["min"].as_py(), found["max"].as_py()
    return Extent(column, least or 0, greatest or 0)
