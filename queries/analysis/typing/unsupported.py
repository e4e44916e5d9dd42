"""Constructs of GSQL that this version does not support, and those that no version could run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError, UnsupportedError
from gscope.queries.analysis.typing.typer import is_aggregate
from gscope.queries.gsql import nodes
from gscope.queries.gsql.node import walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.queries.expressions.expressions import Expression


def refuse_unsupported(body: nodes.Select) -> None:
    """Refuse the clauses of SELECT that this version does not support.

    Raises:
        UnsupportedError: there is such a clause.
    """
    for join, joined in zip(body.joins, body.inputs[1:], strict=True):
        if join.kind is nodes.JoinKind.FILTER and len(body.inputs) > 2:
            message = "FILTER_JOIN takes two inputs"
            remedy = "name the query with two, and join its result to the others"
            raise UnsupportedError(message, position=joined.position, remedy=remedy)
    if len(body.inputs) > 1:
        refuse_windows(body.inputs, "a join")


def refuse_windows(inputs: Sequence[nodes.Input], what: str) -> None:
    """Refuse RANGE and SLICES on the inputs of a join or union.

    Args:
        inputs: its inputs.
        what: its name in the message.

    Raises:
        UnsupportedError: an input has a window.
    """
    for one in inputs:
        if one.window is not None:
            kind = "SLICES" if isinstance(one.window, nodes.SlicesWindow) else "RANGE"
            message = f"this version does not support windows ([{kind} …]) on the inputs of {what}"
            remedy = (
                "aggregate over the window in a query of its own that selects window_end, and "
                f"write {what} over its result, on window_end"
            )
            raise UnsupportedError(message, position=one.window.position, remedy=remedy)


def check_where(node: nodes.Expression) -> None:
    """Refuse aggregates in WHERE, which filters tuples before there are groups.

    Raises:
        TypeMismatchError: there is an aggregate in it.
    """
    call = next(find_aggregates(node), None)
    if call is not None:
        message = (
            f"aggregate {call.name} is not allowed in WHERE, which filters tuples before grouping"
        )
        raise TypeMismatchError(message, position=call.position, remedy="move it to HAVING")


def check_filter(node: nodes.Expression) -> None:
    """Refuse aggregates in FILTER, which selects the tuples of one.

    Raises:
        TypeMismatchError: there is an aggregate in it.
    """
    call = next(find_aggregates(node), None)
    if call is not None:
        message = (
            f"aggregate {call.name} is not allowed in FILTER, which selects tuples before grouping"
        )
        remedy = "to test the group write HAVING, or if_else(count(*) > 1, sum(len), NULL)"
        raise TypeMismatchError(message, position=call.position, remedy=remedy)


def find_aggregates(node: nodes.Node) -> Iterator[nodes.FunctionCall]:
    """Yield the calls of aggregates in a piece of syntax, outermost first."""
    for part in walk(node):
        if isinstance(part, nodes.FunctionCall) and is_aggregate(part):
            yield part


def is_grouped(body: nodes.Select) -> bool:
    """Return whether a SELECT has groups: terms, CLOSING_WHEN, or an aggregate."""
    parts = (*body.outputs, *(() if body.having is None else (body.having,)))
    has_terms = bool(body.group_by) or body.closing_when is not None
    return has_terms or any(any(find_aggregates(part)) for part in parts)


def refuse_aggregate(node: nodes.FunctionCall) -> Expression:
    """Refuse an aggregate, for the ``Typer`` of a clause that tests single tuples.

    Raises:
        TypeMismatchError: always.
    """
    message = f"aggregate {node.name} is not allowed here"
    raise TypeMismatchError(message, position=node.position)
