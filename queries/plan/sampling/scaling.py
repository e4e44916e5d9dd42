"""Scaling: counts and sums over a sample become estimates, where the program says so.

The program names the aggregates that a node scales (``NodeSampling``), not by how much: the rate is
a setting of the run, or that of an epoch (``epoch_rates.py``). The HFTA job binds it before it
evaluates anything::

    SELECT tb, count(*) … HAVING count(*) > 5      at the rate 0.1
    →  scaled_int(count, 10.0) AS cnt … HAVING scaled_int(count, 10.0) > 5

Of the columns that describe a sample only the estimate is scaled: everything else in them is of the
packets that were kept (``plan/sample_columns.py``).

Keys and the aggregates of other nodes stay as they are: a sum of scaled counts is scaled already.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from gscope.queries.expressions.expressions import Call, Column, Expression, Literal
from gscope.queries.expressions.schema import Schema
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import AggregationNode, RunningNode
from gscope.queries.plan.sample_columns import OF_SAMPLE
from gscope.queries.plan.trees import map_expression
from gscope.queries.plan.window_node import WindowNode

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.plan.program import HftaNode, Program

AggregatingNode = AggregationNode | RunningNode | WindowNode


def with_rate(program: Program, rate: float) -> Program:
    """Return ``program`` with the aggregates that it scales multiplied by 1/rate.

    Where packets are sampled, the column ``sample_rate`` becomes the rate; elsewhere it is 1. At
    the rate 1 nothing is scaled: the answer is that of all packets, to the last digit.
    """
    if rate == 1 or not program.sampling:
        return program
    sampled = {node.query: node for component in program.sampling for node in component.nodes}
    nodes = tuple(
        _with_rate(node, frozenset(sampled[node.query].scaled), rate)
        if node.query in sampled
        else node
        for node in program.nodes
    )
    return replace(program, nodes=nodes)


def mapped(value: Any, change: Callable[[Expression], Expression]) -> Any:
    """Return a node, or a part of one, with ``change`` applied to all parts of its expressions."""
    if isinstance(value, Expression):
        return map_expression(value, change)
    if isinstance(value, tuple):
        return tuple(mapped(each, change) for each in value)
    if not is_dataclass(value) or isinstance(value, type | Schema):
        return value
    changed = {
        field.name: new
        for field in fields(value)
        if (new := mapped(old := getattr(value, field.name), change)) != old
    }
    return replace(value, **changed) if changed else value


def _with_rate(node: HftaNode, scaled: frozenset[str], rate: float) -> HftaNode:
    def known(part: Expression) -> Expression:
        is_rate = isinstance(part, Call) and part.function == "sample_rate"
        return Literal(rate, GsqlType.FLOAT) if is_rate else part

    node = mapped(node, known)
    return with_scaled(node, scaled, lambda column: scaled_by(column, rate)) if scaled else node


def with_scaled(
    node: HftaNode, names: frozenset[str], multiplied: Callable[[Column], Expression]
) -> HftaNode:
    """Return an aggregating node with some of its aggregates scaled.

    Args:
        node: the node.
        names: the aggregates.
        multiplied: returns what replaces one of them.
    """
    assert isinstance(node, AggregatingNode), node

    def change(part: Expression) -> Expression:
        match part:
            case Column(name) if name in names:
                return multiplied(part)
            case Call("sample_groups"):
                return part
            case Call(function, (value, *of_sample)) if function in OF_SAMPLE:
                return replace(part, arguments=(change(value), *of_sample))
            case Call(arguments=arguments):
                return replace(part, arguments=tuple(map(change, arguments)))
        return part

    columns = tuple(replace(each, expression=change(each.expression)) for each in node.columns)
    having = None if node.having is None else change(node.having)
    return replace(node, columns=columns, having=having)


def scaled_by(column: Column, rate: float) -> Expression:
    """Return a column multiplied by 1/rate; itself, to the last digit, at the rate 1."""
    if rate == 1:
        return column
    function = "mul_float" if column.type is GsqlType.FLOAT else "scaled_int"
    arguments = (column, Literal(1 / rate, GsqlType.FLOAT))
    return Call(function, arguments, column.type, column.is_nullable)
