"""Schemas of operators: types, nullability and inferred orderings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.ordering.temporal import column_ordering
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import CONSTANT, VARYING

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from gscope.queries.catalog.ordering.temporal import Leaf
    from gscope.queries.expressions.expressions import NamedExpression
    from gscope.queries.expressions.types import Ordering


def column_schema(column: NamedExpression, ordering: Callable[[Leaf], Ordering]) -> ColumnSchema:
    """Return the schema of a computed column; ``ordering`` returns that of its leaves."""
    e = column.expression
    return ColumnSchema(column.name, e.type, e.is_nullable, column_ordering(e, ordering))


def group_schema(
    keys: Sequence[ColumnSchema], ordered: Container[str], aggregates: Sequence[ColumnSchema]
) -> Schema:
    """Return the schema of groups, which leave by epoch: only ``ordered`` keys stay temporal."""
    kept = [
        key
        if key.name in ordered or key.ordering == CONSTANT
        else ColumnSchema(key.name, key.type, key.is_nullable, VARYING)
        for key in keys
    ]
    return Schema((*kept, *aggregates))
