"""Join: rows of two sides whose epochs are equal, and what else the query asks of a pair.

A pair has equal epochs, so releasing both sides up to the same value gives every match and every outer
row exactly once; nothing is kept from step to step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators.epochs import EpochOperator
from gscope.engine.release import Side
from gscope.engine.spark.expressions import column_leaf, quote, to_sql
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.expressions import Column, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.queries.plan.expressions import Expression, PacketField
    from gscope.queries.plan.program import JoinNode

_KINDS = {
    JoinKind.INNER: "INNER JOIN",
    JoinKind.OUTER: "FULL OUTER JOIN",
    JoinKind.LEFT_OUTER: "LEFT OUTER JOIN",
    JoinKind.RIGHT_OUTER: "RIGHT OUTER JOIN",
}
_ALIASES = ("l", "r")


def bookkeeping(node: JoinNode) -> EpochOperator:
    """The running state of a join."""
    return EpochOperator(node, tuple(Side(epoch) for epoch in node.epochs), node.columns)


def lower(node: JoinNode, left: str, right: str, *, fits_in_memory: bool = True) -> str:
    """The Spark SQL text of a join over the rows of both sides.

    SELECT columns FROM (SELECT needed FROM left WHERE predicate) JOIN (… right …)
    ON epoch = epoch AND keys = keys AND residual

    One side becomes a hash table, which needs no sorting but cannot spill; where a side may not fit,
    both are sorted.
    """
    method = "SHUFFLE_HASH" if fits_in_memory else "MERGE"
    sides = [_side(node, number, source) for number, source in enumerate((left, right))]
    pairs = (node.epochs, *node.keys)
    tests = [f"{to_sql(a, _leaf)} = {to_sql(b, _leaf)}" for a, b in pairs]
    if node.residual is not None:
        tests.append(to_sql(node.residual, _leaf))
    columns = ", ".join(
        f"{to_sql(column.expression, _leaf)} AS {quote(column.name)}" for column in node.columns
    )
    return (
        f"SELECT /*+ {method}(l, r) */ {columns} "
        f"FROM {sides[0]} {_KINDS[node.kind]} {sides[1]} ON {' AND '.join(tests)}"
    )


def expressions(node: JoinNode) -> Iterator[Expression]:
    """Every expression that Spark evaluates for ``node``."""
    yield from (column.expression for column in node.columns)
    yield from node.epochs
    yield from (expression for pair in node.keys for expression in pair)
    for predicate in (*node.predicates, node.residual):
        if predicate is not None:
            yield predicate


def _side(node: JoinNode, number: int, source: str) -> str:
    """A side's rows that pass its predicate, with the columns that the join needs."""
    outputs = [column.expression for column in node.columns]
    residual = [] if node.residual is None else [node.residual]
    keys = [pair[number] for pair in node.keys]
    used = {
        part.name: None
        for expression in (node.epochs[number], *keys, *residual, *outputs)
        for part in walk(expression)
        if isinstance(part, Column) and part.input == number
    }
    predicate = node.predicates[number]
    where = "" if predicate is None else f" WHERE {to_sql(predicate, column_leaf)}"
    return f"(SELECT {', '.join(map(quote, used))} FROM {source}{where}) {_ALIASES[number]}"


def _leaf(column: Column | PacketField) -> str:
    assert isinstance(column, Column)
    return f"{_ALIASES[column.input]}.{quote(column.name)}"
