"""The columns of a program's streams and results as expressions over packet fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Column, PacketField, walk
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import (
    AggregationNode,
    MergeNode,
    RunningNode,
    StreamInput,
    node_inputs,
)
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.trees import by_name, map_expression
from gscope.queries.plan.window_node import WindowNode
from gscope.queries.plan.windows.columns import WINDOW_END

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import HftaNode, Input, Program

TIME_FIELDS = frozenset({"time", "timestamp", "time_ns"})
"""The fields of a packet that tell its time."""


class PacketColumns:
    """The columns of every stream and operator of ``program``, by name, over packet fields.

    Aggregates, and what is computed from them, remain as they are.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._nodes = {node.query: node for node in program.nodes}
        self._made: dict[Input, dict[str, Expression]] = {}

    def of(self, source: Input) -> dict[str, Expression]:
        """Return the columns of an input of operators."""
        if source not in self._made:
            self._made[source] = self._columns(source)
        return self._made[source]

    def _columns(self, source: Input) -> dict[str, Expression]:
        if isinstance(source, StreamInput):
            lfta = self._program.lfta(source.lfta)
            return by_name((*lfta.keys, *lfta.columns))
        node: HftaNode = self._nodes[source.query]
        inputs = [self.of(each) for each in node_inputs(node)]
        if isinstance(node, MergeNode):
            return inputs[0]
        if isinstance(node, AggregationNode | RunningNode | SampleNode):
            inputs = [{key.name: over_packets(key.expression, inputs) for key in node.keys}]
        if isinstance(node, WindowNode):
            inputs = [_windowed(node, inputs)]
        return {each.name: over_packets(each.expression, inputs) for each in node.columns}


def over_packets(expression: Expression, inputs: Sequence[Mapping[str, Expression]]) -> Expression:
    """Return ``expression`` with the expressions of its inputs for columns, where known."""

    def replaced(part: Expression) -> Expression:
        if not isinstance(part, Column):
            return part
        columns = inputs[part.input] if part.input < len(inputs) else {}
        return columns.get(part.name, part)

    return map_expression(expression, replaced)


def is_of_time(expression: Expression) -> bool:
    """Return whether an expression depends on nothing but the time of a packet."""
    return all(map(_is_of_time, walk(expression)))


def _is_of_time(part: Expression) -> bool:
    if isinstance(part, Column):
        return False
    return not isinstance(part, PacketField) or part.name in TIME_FIELDS


def _windowed(
    node: WindowNode, inputs: Sequence[Mapping[str, Expression]]
) -> dict[str, Expression]:
    """Return the end of a window as a function of time: it is answered once the clock is there."""
    on = None if node.on is None else over_packets(node.on, inputs)
    if node.unit_ns is None:
        return {} if on is None else {WINDOW_END: on}
    if on is not None and not is_of_time(on):
        return {}
    return {WINDOW_END: PacketField("timestamp", GsqlType.TIMESTAMP, is_nullable=False)}
