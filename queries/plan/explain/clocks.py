"""Whether an epoch goes on without traffic: times follow the clock, declared orders do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.scalar.orders import declared_ordering
from gscope.queries.expressions.expressions import Column, NamedExpression, walk
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    MergeNode,
    RunningNode,
    SelectionNode,
    StreamInput,
    TopNode,
    WatchlistJoinNode,
)
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.window_node import WindowNode

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import HftaNode, Input, Program


def warning(program: Program, node: HftaNode) -> str:
    """Return a warning about what may keep a node's epochs open for ever; "" if nothing does."""
    epochs = [(node, epoch, side) for side, epoch in enumerate(_epochs(node))]
    if not _rest_on_declaration(program, epochs):
        return ""
    return (
        "no epoch closes without tuples: the order of its term is declared, so heartbeats do "
        "not advance it; the end of the input does"
    )


def _epochs(node: HftaNode) -> tuple[Expression, ...]:
    """Return the expression that releases rows, for each side."""
    match node:
        case AggregationNode() | RunningNode() | SampleNode():
            return (next(key.expression for key in node.keys if key.name == node.epoch),)
        case WindowNode():
            return (node.epoch_expression,)
        case JoinNode():
            return node.epochs
        case MergeNode():
            column = node.schema[node.on[0]]
            return (Column(column.name, column.type, column.is_nullable),)
        case TopNode():
            return (node.epoch_expression,)
        case SelectionNode() | WatchlistJoinNode():
            return ()


def _rest_on_declaration(program: Program, epochs: list[tuple[HftaNode, Expression, int]]) -> bool:
    """Return whether any of ``epochs`` rests on a declared order.

    Each is over the columns of one side of a node.
    """
    waiting = list(epochs)
    met: set[tuple[Input, str]] = set()
    while waiting:
        node, epoch, side = waiting.pop()
        columns = {part.name for part in walk(epoch) if isinstance(part, Column)}
        for source in _inputs(node, side):
            for named in _columns(program, source):
                if named.name not in columns or (source, named.name) in met:
                    continue
                met.add((source, named.name))
                if isinstance(source, StreamInput):
                    if any(declared_ordering(part) is not None for part in walk(named.expression)):
                        return True
                    continue
                below = _node(program, source.query)
                sides = {part.input for part in walk(named.expression) if isinstance(part, Column)}
                expression = _below_keys(below, named.expression)
                waiting += [(below, expression, number) for number in sides]
    return False


def _below_keys(node: HftaNode, expression: Expression) -> Expression:
    """Return an output expression over groups in terms of the node's input, the epoch only."""
    if isinstance(node, WindowNode):
        return node.epoch_expression
    if isinstance(node, AggregationNode | RunningNode | SampleNode):
        names = {part.name for part in walk(expression) if isinstance(part, Column)}
        return next((k.expression for k in node.keys if k.name in names), expression)
    return expression


def _node(program: Program, query: str) -> HftaNode:
    return next(node for node in program.nodes if node.query == query)


def _inputs(node: HftaNode, side: int) -> tuple[Input, ...]:
    match node:
        case MergeNode():
            return node.inputs
        case JoinNode():
            return (node.inputs[side],)
        case _:
            return (node.input,)


def _columns(program: Program, source: Input) -> tuple[NamedExpression, ...]:
    if isinstance(source, StreamInput):
        lfta = program.lfta(source.lfta)
        return (*lfta.keys, *lfta.columns)
    node = _node(program, source.query)
    if isinstance(node, MergeNode):
        return tuple(
            NamedExpression(c.name, Column(c.name, c.type, c.is_nullable))
            for c in node.schema.columns
        )
    return node.columns
