"""The first rows of each epoch as Spark SQL text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.sql.expressions import quote
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.row_order import sort_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.engine.spark.sql.inputs import Sources
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.program import TopNode
    from gscope.queries.plan.row_order import Order, SortKey

_NUMBER = "$row"


def lower(node: TopNode, sources: Sources) -> str:
    """Return the Spark SQL text of a top: the first rows of each epoch, in no particular order."""
    (source,) = sources.rows
    columns = ", ".join(quote(name) for name in node.schema.names)
    return first_rows(f"SELECT {columns} FROM {source}", node.schema, node.order)


def first_rows(text: str, schema: Schema, order: Order | None) -> str:
    """Return the text of the rows of ``text`` that LIMIT keeps.

    SELECT columns FROM (SELECT *, row_number() OVER (PARTITION BY epoch ORDER BY keys) AS `$row`
    FROM (text)) WHERE `$row` <= limit

    Spark keeps no more rows than the limit on the way to it. Without an epoch it takes the first
    rows of each partition, and the first of these.
    """
    if order is None or order.limit is None:
        return text
    keys = ", ".join(_key(key, schema) for key in sort_keys(schema, order))
    columns = ", ".join(quote(name) for name in schema.names)
    if order.epoch is None:
        return f"SELECT {columns} FROM (SELECT * FROM ({text}) ORDER BY {keys} LIMIT {order.limit})"
    number = f"row_number() OVER (PARTITION BY {quote(order.epoch)} ORDER BY {keys})"
    numbered = f"SELECT *, {number} AS {quote(_NUMBER)} FROM ({text})"
    return f"SELECT {columns} FROM ({numbered}) WHERE {quote(_NUMBER)} <= {order.limit}"


def _key(key: SortKey, schema: Schema) -> str:
    """Return a column as ORDER BY lists it.

    To Spark -0.0 and 0.0 are equal; here -0.0 is less, as in ``engine/sinks/row_order.py``.
    """
    name = quote(key.name)
    direction = "DESC" if key.is_descending else "ASC"
    text = f"{name} {direction} NULLS {'FIRST' if key.has_nulls_first else 'LAST'}"
    if schema[key.name].type is GsqlType.FLOAT:
        text += f", coalesce(cast({name} AS STRING) <> '-0.0', true) {direction}"
    return text


def expressions(node: TopNode) -> Iterator[Expression]:  # noqa: ARG001
    """Yield every expression that Spark evaluates for ``node``: none, its rows pass unchanged."""
    yield from ()
