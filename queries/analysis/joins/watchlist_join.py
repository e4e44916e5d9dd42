"""Joins with a watchlist: which kinds of join take one, and the plan node.

The state of such a join is the table itself, so it needs no temporal condition. Tuples pass in the
order in which they arrive, each with every row of the table that matches it, so the orderings of
all columns of the stream survive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError, UnsupportedError
from gscope.queries.analysis.names.watchlists import WatchlistSource
from gscope.queries.expressions.expressions import Column, NamedExpression
from gscope.queries.expressions.schema import ColumnSchema, Schema, free_name
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.logical import WatchlistJoin
from gscope.queries.plan.trees import conjunction, of_input

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.analysis.joins.conditions import Conditions
    from gscope.queries.analysis.names.scope import Source
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.gsql import nodes
    from gscope.queries.plan.logical import Node, Watchlist


def check_kind(join: nodes.JoinClause, source: Source, position: nodes.Node) -> None:
    """Refuse WATCHLIST_JOIN with a stream, and an outer or FILTER_JOIN with a watchlist.

    Raises:
        TypeMismatchError: a stream stands where a watchlist should.
        UnsupportedError: a join with a watchlist is neither inner nor WATCHLIST_JOIN.
    """
    if not isinstance(source, WatchlistSource):
        if join.kind is JoinKind.WATCHLIST:
            message = f"{source.what} is a stream, not a watchlist"
            raise TypeMismatchError(message, position=position.position, remedy="write INNER_JOIN")
    elif join.kind not in (JoinKind.INNER, JoinKind.WATCHLIST):
        message = f"this version does not support {join.kind.value} with a watchlist"
        raise UnsupportedError(message, position=position.position, remedy="write WATCHLIST_JOIN")


def watchlist_join(
    input: Node,  # noqa: A002  # as the field of the node is called
    watchlist: Watchlist,
    conditions: Conditions,
    filters: Sequence[Expression],
    label: str,
) -> tuple[WatchlistJoin, dict[str, str]]:
    """Return the tuples of ``input``, each with every row of the watchlist that matches it.

    Args:
        input: the stream side; its columns come first and keep their names.
        watchlist: the table.
        conditions: the conditions of the join; a temporal equality is a key like any other.
        filters: conditions on the watchlist alone, over its columns.
        label: the name that the query gives the watchlist.

    Returns:
        The node, and for each field of the watchlist the name of its column in the result.
    """
    columns: list[NamedExpression] = []
    schema: list[ColumnSchema] = []
    for c in input.schema.columns:
        columns.append(NamedExpression(c.name, Column(c.name, c.type, c.is_nullable)))
        schema.append(c)
    names = {}
    for c in watchlist.schema.columns:
        taken = {each.name for each in schema}
        name = free_name(c.name if c.name not in taken else f"{label}_{c.name}", taken)
        columns.append(NamedExpression(name, Column(c.name, c.type, c.is_nullable, 1)))
        schema.append(ColumnSchema(name, c.type, c.is_nullable))
        names[c.name] = name
    residual = conjunction([*conditions.residual, *(of_input(e, 1) for e in filters)])
    node = WatchlistJoin(
        input=input,
        watchlist=watchlist,
        keys=conditions.equalities,
        residual=residual,
        columns=tuple(columns),
        schema=Schema(tuple(schema)),
    )
    return node, names
