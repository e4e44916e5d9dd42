"""Join of equal epochs as Spark SQL text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.sql import outer_residual
from gscope.engine.spark.sql.expressions import select_list
from gscope.engine.spark.sql.join_sides import equated, leaf, on_clause, side_rows
from gscope.queries.gsql.nodes import JoinKind

if TYPE_CHECKING:
    from gscope.engine.spark.sql.inputs import Sources
    from gscope.queries.plan.program import JoinNode

_KINDS = {
    JoinKind.INNER: "INNER JOIN",
    JoinKind.OUTER: "FULL OUTER JOIN",
    JoinKind.LEFT_OUTER: "LEFT OUTER JOIN",
    JoinKind.RIGHT_OUTER: "RIGHT OUTER JOIN",
}


def lower(node: JoinNode, sources: Sources) -> str:
    """Return the Spark SQL text of a join of equal epochs.

    SELECT columns FROM (SELECT needed FROM left WHERE predicate) JOIN (… right …)
    ON epoch = epoch AND keys = keys AND residual

    One side becomes a hash table, which needs no sorting but cannot spill; where a side may not fit
    into memory, both are sorted.
    """
    left, right = sources.rows
    if outer_residual.is_needed(node):
        return outer_residual.lower(node, left, right)
    method = "SHUFFLE_HASH" if sources.fits_in_memory else "MERGE"
    equal = zip(equated(node, 0), equated(node, 1), strict=True)
    return (
        f"SELECT /*+ {method}(l, r) */ {select_list(node.columns, leaf)}"
        f" FROM {side_rows(node, 0, left)} l {_KINDS[node.kind]} {side_rows(node, 1, right)} r"
        f" ON {on_clause(equal, node.residual)}"
    )
