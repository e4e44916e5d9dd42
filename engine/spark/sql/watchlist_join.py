"""Join with a watchlist as Spark SQL text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.sql.expressions import quote, select_list, where
from gscope.engine.spark.sql.join_sides import leaf, on_clause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.engine.spark.sql.inputs import Sources
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.logical import Watchlist
    from gscope.queries.plan.program import WatchlistJoinNode


def view(watchlist: Watchlist) -> str:
    """Return the view in which the rows of a table are registered."""
    return quote(f"watchlist_{watchlist.name}")


def lower(node: WatchlistJoinNode, sources: Sources) -> str:
    """Return the Spark SQL text of a join of rows with a table.

    SELECT columns FROM (source WHERE predicate) JOIN table ON keys = keys AND residual
    """
    (source,) = sources.rows
    return (
        f"SELECT /*+ BROADCAST(r) */ {select_list(node.columns, leaf)}"
        f" FROM (SELECT * FROM {source}{where(node.predicate)}) l"
        f" INNER JOIN {view(node.watchlist)} r ON {on_clause(node.keys, node.residual)}"
    )


def expressions(node: WatchlistJoinNode) -> Iterator[Expression]:
    """Yield every expression that Spark evaluates for ``node``."""
    yield from (column.expression for column in node.columns)
    yield from (expression for pair in node.keys for expression in pair)
    for predicate in (node.predicate, node.residual):
        if predicate is not None:
            yield predicate
