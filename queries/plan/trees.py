"""Helpers that rewrite rules and the split share: to rebuild expressions and trees of nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.expressions.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    NamedExpression,
    walk,
)
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.logical import (
    Filter,
    GroupBy,
    Join,
    Merge,
    Node,
    Project,
    QueryScan,
    RunningGroupBy,
    Scan,
    WatchlistJoin,
    WindowGroupBy,
)
from gscope.queries.plan.sampling_operator import SampleGroupBy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


def map_expression(
    expression: Expression, change: Callable[[Expression], Expression]
) -> Expression:
    """Return ``expression`` with ``change`` applied to every part, innermost first."""
    if isinstance(expression, Call):
        arguments = tuple(map_expression(a, change) for a in expression.arguments)
        if arguments != expression.arguments:
            expression = replace(expression, arguments=arguments)
    return change(expression)


def substitute(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """Return ``expression`` with each input column replaced by the entry of its name."""

    def change(part: Expression) -> Expression:
        return columns[part.name] if isinstance(part, Column) else part

    return map_expression(expression, change)


def substitute_all(
    named: Sequence[NamedExpression], columns: Mapping[str, Expression]
) -> tuple[NamedExpression, ...]:
    """Return named expressions after ``substitute`` of each."""
    return tuple(NamedExpression(n.name, substitute(n.expression, columns)) for n in named)


def by_name(named: Sequence[NamedExpression]) -> dict[str, Expression]:
    """Return expressions by the name of the column that they fill."""
    return {n.name: n.expression for n in named}


def conjuncts(predicate: Expression | None) -> tuple[Expression, ...]:
    """Return the predicates whose conjunction ``predicate`` is; () for None."""
    if predicate is None:
        return ()
    if isinstance(predicate, Call) and predicate.function == "and":
        return tuple(part for a in predicate.arguments for part in conjuncts(a))
    return (predicate,)


def conjunction(predicates: Sequence[Expression]) -> Expression | None:
    """Return the conjunction of ``predicates``, None if there are none."""
    result: Expression | None = None
    for predicate in dict.fromkeys(predicates):
        if result is None:
            result = predicate
        else:
            nullable = result.is_nullable or predicate.is_nullable
            result = Call("and", (result, predicate), GsqlType.BOOL, nullable)
    return result


def inputs_of(expression: Expression) -> set[int]:
    """Return the inputs whose columns ``expression`` reads."""
    return {part.input for part in walk(expression) if isinstance(part, Column)}


def is_null_of_nulls(expression: Expression) -> bool:
    """Return whether ``expression`` is sure to be NULL if all columns in it are."""
    if not isinstance(expression, Call):
        return not isinstance(expression, Literal)
    return FUNCTIONS[expression.function].is_strict and any(
        is_null_of_nulls(argument) for argument in expression.arguments
    )


def of_input(expression: Expression, number: int) -> Expression:
    """Return ``expression`` with all its columns read from input ``number``."""
    return map_expression(
        expression,
        lambda part: replace(part, input=number) if isinstance(part, Column) else part,
    )


def map_nodes(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return the tree of ``node`` with ``change`` applied to every node, leaves first."""
    match node:
        case Scan() | QueryScan():
            return change(node)
        case (
            Filter()
            | Project()
            | GroupBy()
            | RunningGroupBy()
            | WindowGroupBy()
            | SampleGroupBy()
            | WatchlistJoin()
        ):
            return change(replace(node, input=map_nodes(node.input, change)))
        case Merge():
            inputs = tuple(map_nodes(each, change) for each in node.inputs)
            return change(replace(node, inputs=inputs))
        case Join(inputs=(left, right)):
            return change(replace(node, inputs=(map_nodes(left, change), map_nodes(right, change))))
        case _:
            assert_never(node)


def nodes_of(node: Node) -> Iterator[Node]:
    """Yield ``node`` and every node below it."""
    yield node
    match node:
        case Scan() | QueryScan():
            return
        case Merge() | Join():
            below: Sequence[Node] = node.inputs
        case _:
            below = (node.input,)
    for each in below:
        yield from nodes_of(each)


def scans(node: Node) -> tuple[str, ...]:
    """Return the names of the queries that a tree reads."""
    return tuple(each.query for each in nodes_of(node) if isinstance(each, QueryScan))
