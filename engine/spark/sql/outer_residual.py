"""Outer joins whose residual needs a Python function, which Spark does not accept in an ON clause.

An inner join finds the pairs, and a filter above it applies the residual; rows of an outer side
that are in no pair are added. A row is identified by its epoch, its keys and its number among the
rows with the same epoch and keys. Rows are numbered in the order of all their columns; rows that
are equal in all columns may change places, which no answer shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.sql.expressions import (
    SPARK_TYPES,
    column_leaf,
    needs_udf,
    quote,
    select_list,
    to_sql,
)
from gscope.engine.spark.sql.join_sides import (
    ALIASES,
    equated,
    leaf,
    side_rows,
    used_columns,
)
from gscope.queries.expressions.expressions import Call, Column, walk
from gscope.queries.gsql.nodes import JoinKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.expressions.expressions import PacketField
    from gscope.queries.plan.program import JoinNode

_OUTER_SIDES = {
    JoinKind.LEFT_OUTER: (0,),
    JoinKind.RIGHT_OUTER: (1,),
    JoinKind.OUTER: (0, 1),
}
_NUMBERS = ("$l", "$r")


def is_needed(node: JoinNode) -> bool:
    """Return whether ``node`` is an outer join with such a residual."""
    if node.residual is None or node.kind not in _OUTER_SIDES:
        return False
    return any(isinstance(part, Call) and needs_udf(part) for part in walk(node.residual))


def lower(node: JoinNode, left: str, right: str) -> str:
    """Return the Spark SQL text of such a join over the rows of both sides."""
    assert node.residual is not None
    sides = [_numbered(node, side, source) for side, source in enumerate((left, right))]
    same = _same(node, *ALIASES)
    numbers = ", ".join(f"{alias}.{_n(side)}" for side, alias in enumerate(ALIASES))
    matched = ", ".join(f"l.{name} AS {name}" for name in _equated_names(node))
    pairs = (
        f"(SELECT {select_list(node.columns, leaf)}, {matched}, {numbers} FROM {sides[0]} l"
        f" INNER JOIN {sides[1]} r ON {same} WHERE {to_sql(node.residual, leaf)})"
    )
    columns = ", ".join(quote(column.name) for column in node.columns)
    parts = [f"SELECT {columns} FROM {pairs}"]
    for side in _OUTER_SIDES[node.kind]:
        alias = ALIASES[side]
        parts.append(
            f"SELECT {select_list(node.columns, _leaf_without(1 - side))}"
            f" FROM {sides[side]} {alias}"
            f" LEFT ANTI JOIN {pairs} p ON {_same(node, alias, 'p')}"
            f" AND {alias}.{_n(side)} = p.{_n(side)}"
        )
    return " UNION ALL ".join(parts)


def _numbered(node: JoinNode, side: int, source: str) -> str:
    """Return the rows of a side with the columns that identify them."""
    expressions = [to_sql(expression, column_leaf) for expression in equated(node, side)]
    names = zip(expressions, _equated_names(node), strict=True)
    identity = ", ".join(f"{expression} AS {name}" for expression, name in names)
    order = ", ".join(map(quote, used_columns(node, side)))
    number = f"row_number() OVER (PARTITION BY {', '.join(_equated_names(node))} ORDER BY {order})"
    rows = f"(SELECT *, {identity} FROM {side_rows(node, side, source)})"
    return f"(SELECT *, {number} AS {_n(side)} FROM {rows})"


def _equated_names(node: JoinNode) -> list[str]:
    return [quote(f"${place}") for place in range(1 + len(node.keys))]


def _n(side: int) -> str:
    return quote(_NUMBERS[side])


def _same(node: JoinNode, one: str, other: str) -> str:
    return " AND ".join(f"{one}.{name} = {other}.{name}" for name in _equated_names(node))


def _leaf_without(missing: int) -> Callable[[Column | PacketField], str]:
    """Return the leaf for rows without a partner: columns of the missing side are NULL."""

    def present(column: Column | PacketField) -> str:
        is_missing = isinstance(column, Column) and column.input == missing
        return f"cast(NULL AS {SPARK_TYPES[column.type]})" if is_missing else leaf(column)

    return present
