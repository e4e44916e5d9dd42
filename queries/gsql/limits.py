"""Limits on the size of a query, checked as soon as its text is parsed.

A query's expressions become machine code and SQL, and both compilers take time for each of them.
Decision 32 has the measurements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.errors import GsqlSyntaxError
from gscope.queries.gsql import nodes
from gscope.queries.gsql.scanner import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_COLUMNS = 256
"""The most columns of one SELECT, and the most terms of one GROUP BY."""

MAX_JOINED = 16
"""The most inputs of one join."""

MAX_PARTS = 2000
"""The most names, operators, calls and CASE branches of one query with its subqueries.

Constants do not count.
"""


def check_limits(root: Any) -> None:
    """Refuse a text that would take minutes to compile, or overflow the stack of a visitor.

    Raises:
        GsqlSyntaxError: a query is too deep, too wide or too long.
    """
    pending: list[tuple[Any, int]] = [(root, 1)]
    parts = 0
    while pending:
        node, depth = pending.pop()
        if depth > MAX_DEPTH:
            message = f"operators and queries are nested more than {MAX_DEPTH} deep"
            remedy = (
                "write long lists of alternatives as x IN (a, b, …), "
                "or split the query into several"
            )
            raise GsqlSyntaxError(message, position=node.position, remedy=remedy)
        if isinstance(node, nodes.Query | nodes.ProtocolDefinition):
            # All nodes of an item leave the stack before the next item is visited.
            parts = 0
        elif isinstance(node, nodes.Select):
            _check_width(node)
        elif isinstance(node, _COUNTED):
            parts += 1
            if parts > MAX_PARTS:
                _refuse_parts(node)
        # In the order of the text, so that an error marks the place where the limit is exceeded.
        pending.extend((child, depth + 1) for child in reversed(tuple(_children(node))))


_COUNTED = (
    nodes.Name,
    nodes.Unary,
    nodes.Binary,
    nodes.FunctionCall,
    nodes.CaseBranch,
    nodes.Between,
    nodes.InList,
    nodes.IsDistinct,
    nodes.IsNull,
    nodes.IsTruth,
    nodes.Like,
    nodes.ParameterReference,
    nodes.Definition,
    nodes.Property,
)


def _check_width(select: nodes.Select) -> None:
    for what, columns in (
        ("selected columns", select.outputs),
        ("GROUP BY terms", select.group_by),
    ):
        if len(columns) > MAX_COLUMNS:
            message = f"too many {what}: expected at most {MAX_COLUMNS}, got {len(columns)}"
            remedy = (
                "split the query into several with the same FROM and GROUP BY and run them "
                "together; they share one reading of the packets"
            )
            raise GsqlSyntaxError(message, position=columns[MAX_COLUMNS].position, remedy=remedy)
    if len(select.inputs) > MAX_JOINED:
        message = f"too many inputs: expected at most {MAX_JOINED}, got {len(select.inputs)}"
        remedy = (
            "join the results of smaller joins, each a query of its own, "
            "or merge streams with the same columns"
        )
        raise GsqlSyntaxError(message, position=select.inputs[MAX_JOINED].position, remedy=remedy)


def _refuse_parts(node: Any) -> None:
    message = (
        f"the query is too long: expected at most {MAX_PARTS} names, operators and calls, "
        "exceeded here"
    )
    remedy = (
        "write long lists of values as x IN (a, b, …) or join a WATCHLIST, "
        "or split the query into several"
    )
    raise GsqlSyntaxError(message, position=node.position, remedy=remedy)


def _children(node: Any) -> Iterator[Any]:
    for name in type(node).__match_args__:
        value = getattr(node, name)
        if isinstance(value, tuple):
            yield from (one for one in value if isinstance(one, nodes.Node))
        elif isinstance(value, nodes.Node):
            yield value
