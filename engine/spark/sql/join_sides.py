"""The two sides of a join as Spark SQL text: their rows and how expressions refer to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.sql.expressions import column_leaf, quote, to_sql
from gscope.queries.expressions.expressions import Column, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.queries.expressions.expressions import Expression, PacketField
    from gscope.queries.plan.program import JoinNode

ALIASES = ("l", "r")


def side_rows(node: JoinNode, side: int, source: str) -> str:
    """A side's rows that pass its predicate, with the columns that the join needs; without an alias."""
    predicate = node.predicates[side]
    where = "" if predicate is None else f" WHERE {to_sql(predicate, column_leaf)}"
    return f"(SELECT {', '.join(map(quote, used_columns(node, side)))} FROM {source}{where})"


def used_columns(node: JoinNode, side: int) -> list[str]:
    """The columns of a side that anything but its predicate reads."""
    outputs = [column.expression for column in node.columns]
    residual = [] if node.residual is None else [node.residual]
    read = (*equated(node, side), *residual, *outputs)
    names = {name: None for expression in read for name in _names(expression, side)}
    return list(names)


def equated(node: JoinNode, side: int) -> list[Expression]:
    """The expressions of a side that equal those of the other: the epoch first, then the keys."""
    return [node.epochs[side], *(pair[side] for pair in node.keys)]


def leaf(column: Column | PacketField) -> str:
    """A column by the alias of its side."""
    assert isinstance(column, Column)
    return f"{ALIASES[column.input]}.{quote(column.name)}"


def _names(expression: Expression, side: int) -> Iterable[str]:
    parts = walk(expression)
    return (part.name for part in parts if isinstance(part, Column) and part.input == side)
