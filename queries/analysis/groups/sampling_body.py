"""Which SELECT needs the sampling operator.

Also which part of its WHERE comes before the operator, and refusals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError, UnsupportedError
from gscope.queries.analysis.typing.typer import is_sampling_call
from gscope.queries.gsql import nodes
from gscope.queries.gsql.node import walk

if TYPE_CHECKING:
    from collections.abc import Iterator


def is_sampling(body: nodes.Select) -> bool:
    """Return whether a SELECT needs the sampling operator."""
    clauses = (body.supergroup or None, body.cleaning_when, body.cleaning_by)
    if any(clause is not None for clause in clauses):
        return True
    parts = (*body.outputs, body.where, body.having, *body.order_by)
    return any(is_sampled(part) for part in parts if part is not None)


def is_sampled(node: nodes.Node) -> bool:
    """Return whether a superaggregate or a stateful function is called in a piece of syntax."""
    return any(
        isinstance(part, nodes.FunctionCall) and is_sampling_call(part) for part in walk(node)
    )


def conjuncts_of(node: nodes.Expression | None) -> Iterator[nodes.Expression]:
    """Yield the conditions that AND joins, in their order."""
    if isinstance(node, nodes.Binary) and node.operator is nodes.BinaryOperator.AND:
        yield from conjuncts_of(node.left)
        yield from conjuncts_of(node.right)
    elif node is not None:
        yield node


def plain_where(body: nodes.Select) -> nodes.Expression | None:
    """Return the part of WHERE that reads no state: every tuple is tested on it first."""
    plain: nodes.Expression | None = None
    for each in conjuncts_of(body.where):
        if is_sampled(each):
            continue
        both = (
            nodes.Binary(nodes.BinaryOperator.AND, plain, each, position=each.position)
            if plain
            else each
        )
        plain = both
    return plain


FOLDED = ("count", "sum", "min", "max", "avg", "first", "last")
"""The aggregates that the operator computes."""


def check_folded(node: nodes.FunctionCall, function: str) -> None:
    """Refuse an aggregate that the operator does not compute.

    Args:
        node: the call.
        function: the aggregate that it calls.

    Raises:
        UnsupportedError: it is another one.
    """
    if function not in FOLDED:
        name = f"{node.name}(DISTINCT …)" if node.distinct else node.name
        message = f"the sampling operator does not compute {name}"
        remedy = f"it computes {', '.join(FOLDED)}; aggregate its result in another query"
        raise UnsupportedError(message, position=node.position, remedy=remedy)


def check_clauses(body: nodes.Select, *, is_grouped: bool, has_window: bool) -> None:
    """Refuse combinations of clauses that the operator cannot run.

    Raises:
        GsqlError: there is such a combination.
    """
    clause = next(
        (
            part
            for part in (body.cleaning_when, body.cleaning_by, *body.supergroup)
            if part is not None
        ),
        None,
    )
    position = clause.position if clause is not None else body.position
    if body.closing_when is not None:
        message = "a query has either CLOSING_WHEN or the sampling operator"
        remedy = "sample in one query, and let another with CLOSING_WHEN read its result"
        raise UnsupportedError(message, position=body.closing_when.position, remedy=remedy)
    if body.sample_by:
        message = "SAMPLE BY is not allowed with the sampling operator, which samples by itself"
        raise UnsupportedError(message, position=position, remedy="leave SAMPLE BY out")
    if has_window:
        message = "the sampling operator does not run over a window ([RANGE …] or [SLICES …])"
        remedy = "group by a window of its own: GROUP BY time/60 AS tb, …"
        raise UnsupportedError(message, position=position, remedy=remedy)
    if len(body.inputs) > 1:
        message = "the sampling operator reads one input, not a join"
        remedy = "name the query with the join, and sample its result"
        raise UnsupportedError(message, position=position, remedy=remedy)
    if body.distinct:
        message = "SELECT DISTINCT is not allowed with the sampling operator: groups are distinct"
        raise UnsupportedError(message, position=position, remedy="leave DISTINCT out")
    if not is_grouped:
        message = "the sampling operator keeps groups, but the query has no GROUP BY"
        remedy = "add GROUP BY time/60 AS tb, … with the columns of SELECT"
        raise TypeMismatchError(message, position=position, remedy=remedy)
    if body.cleaning_when is not None and body.cleaning_by is None:
        message = "CLEANING_WHEN starts a cleaning, but no CLEANING_BY says which groups it keeps"
        remedy = "add CLEANING_BY with a condition on groups"
        raise TypeMismatchError(message, position=body.cleaning_when.position, remedy=remedy)
    if body.cleaning_by is not None and body.cleaning_when is None:
        message = "CLEANING_BY keeps groups in a cleaning, but no CLEANING_WHEN starts one"
        remedy = "add CLEANING_WHEN, or move the condition to HAVING"
        raise TypeMismatchError(message, position=body.cleaning_by.position, remedy=remedy)
