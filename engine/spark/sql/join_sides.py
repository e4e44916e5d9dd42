"""The two sides of a join as Spark SQL text: their rows, their columns, and what pairs satisfy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.sql.expressions import quote, to_sql, where
from gscope.queries.expressions.expressions import Column, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.queries.expressions.expressions import Expression, PacketField
    from gscope.queries.plan.program import JoinNode

ALIASES = ("l", "r")


def side_rows(node: JoinNode, side: int, source: str) -> str:
    """Return a side's rows that pass its predicate, with the columns that the join needs.

    The subquery has no alias.
    """
    columns = ", ".join(map(quote, used_columns(node, side)))
    return f"(SELECT {columns} FROM {source}{where(node.predicates[side])})"


def used_columns(node: JoinNode, side: int) -> list[str]:
    """Return the columns of a side that anything but its predicate reads."""
    outputs = [column.expression for column in node.columns]
    residual = [] if node.residual is None else [node.residual]
    read = (*equated(node, side), *residual, *outputs)
    names = {name: None for expression in read for name in _names(expression, side)}
    return list(names)


def equated(node: JoinNode, side: int) -> list[Expression]:
    """Return the expressions of a side that equal those of the other: the epoch, then the keys."""
    return [node.epochs[side], *(pair[side] for pair in node.keys)]


def on_clause(equal: Iterable[tuple[Expression, Expression]], residual: Expression | None) -> str:
    """Return the condition of a pair: what must be equal, and what else must hold."""
    tests = [f"{to_sql(left, leaf)} = {to_sql(right, leaf)}" for left, right in equal]
    if residual is not None:
        tests.append(to_sql(residual, leaf))
    return " AND ".join(tests) or "true"


def leaf(column: Column | PacketField) -> str:
    """Return a column by the alias of its side."""
    assert isinstance(column, Column)
    return f"{ALIASES[column.input]}.{quote(column.name)}"


def _names(expression: Expression, side: int) -> Iterable[str]:
    parts = walk(expression)
    return (part.name for part in parts if isinstance(part, Column) and part.input == side)
