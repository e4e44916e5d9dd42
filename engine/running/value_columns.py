"""Values to hash, of expressions over the columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from gscope.engine.running.vectors import compute, from_arrow, to_arrow
from gscope.queries.expressions.expressions import Column, walk
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.partitioning.partition_hash import ValueColumn, ensure_hashed

if TYPE_CHECKING:
    from gscope.engine.running.vectors import Vector
    from gscope.queries.expressions.expressions import Expression


def value_column(expression: Expression, table: pa.Table) -> ValueColumn:
    """Return the values of an expression of a fixed-size type over the columns of ``table``.

    A function of one address is evaluated once for each distinct address.

    Raises:
        ValueError: the type is FLOAT or STRING.
    """
    ensure_hashed(expression.type)
    if isinstance(expression, Column):
        return ValueColumn.from_arrow(table[expression.name], expression.type)
    read = {part.name for part in walk(expression) if isinstance(part, Column)}
    if expression.type is GsqlType.IP and len(read) == 1:
        (name,) = read
        coded = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
        distinct = pa.table({name: coded.dictionary})
        values = to_arrow(_computed(expression, distinct), expression.type)
        return ValueColumn.from_arrow(values.take(coded.indices), expression.type)
    vector = _computed(expression, table)
    return ValueColumn.from_arrow(to_arrow(vector, expression.type), expression.type)


def _computed(expression: Expression, table: pa.Table) -> Vector:
    kinds = {part.name: part.type for part in walk(expression) if isinstance(part, Column)}
    columns = {name: from_arrow(table[name], kind) for name, kind in kinds.items()}
    return compute(expression, columns.__getitem__, table.num_rows)
