"""Join with a watchlist: rows pass as they come, each with every row of the table that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators.selection import SelectionOperator
from gscope.engine.spark.sql.expressions import column_leaf, quote, to_sql
from gscope.queries.expressions.expressions import Column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.queries.expressions.expressions import Expression, PacketField
    from gscope.queries.plan.logical import Watchlist
    from gscope.queries.plan.program import WatchlistJoinNode

_ALIASES = ("l", "r")


def bookkeeping(node: WatchlistJoinNode) -> SelectionOperator:
    """The running state: that of a selection, for the table has no time."""
    return SelectionOperator(node)


def view(watchlist: Watchlist) -> str:
    """The view in which the rows of a table are to be registered."""
    return quote(f"watchlist_{watchlist.name}")


def lower(node: WatchlistJoinNode, source: str) -> str:
    """The Spark SQL text of a join of the rows of ``source`` with a table.

    SELECT columns FROM (source WHERE predicate) JOIN table ON keys = keys AND residual
    """
    where = "" if node.predicate is None else f" WHERE {to_sql(node.predicate, column_leaf)}"
    tests = [f"{to_sql(a, _leaf)} = {to_sql(b, _leaf)}" for a, b in node.keys]
    if node.residual is not None:
        tests.append(to_sql(node.residual, _leaf))
    columns = ", ".join(
        f"{to_sql(column.expression, _leaf)} AS {quote(column.name)}" for column in node.columns
    )
    return (
        f"SELECT /*+ BROADCAST(r) */ {columns} FROM (SELECT * FROM {source}{where}) l "
        f"INNER JOIN {view(node.watchlist)} r ON {' AND '.join(tests) or 'true'}"
    )


def expressions(node: WatchlistJoinNode) -> Iterator[Expression]:
    """Every expression that Spark evaluates for ``node``."""
    yield from (column.expression for column in node.columns)
    yield from (expression for pair in node.keys for expression in pair)
    for predicate in (node.predicate, node.residual):
        if predicate is not None:
            yield predicate


def _leaf(column: Column | PacketField) -> str:
    assert isinstance(column, Column)
    return f"{_ALIASES[column.input]}.{quote(column.name)}"
