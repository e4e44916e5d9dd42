"""Estimates of packets whose rate moves: rows state the rate of their packets, which scales them.

An LFTA that folds single packets, or packets of groups that its rows do not show, adds packets of
different rates to one number, from which nothing can be removed later and which no factor scales.
So it folds them apart: where a threshold changes, it emits all of its groups, and each row states
the rate at which its packets were sampled. The node above becomes two::

    SELECT tb, count(*) AS cnt, sum(len) AS bytes FROM IP GROUP BY time/60 AS tb
    →  q.groups   tb, p, n = Σ partial counts                     grouped by tb and the rate p
       q          tb, Σ n/p AS cnt                                grouped by tb

A packet that was kept with the probability p counts as 1/p packets (Horvitz and Thompson), so sums
are right on average whatever the rates were. Products n/p are added as whole parts and rests of
2⁻³², which no order of rows changes, and rounded once. At the rate 1 they are n itself.

Of single packets, variances of the parts of different rates are added: each packet is kept or left
out by itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.catalog.ordering.temporal import column_ordering
from gscope.queries.expressions.expressions import Column, NamedExpression
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.plan import part_names
from gscope.queries.plan.program import AggregationNode, QueryInput, StreamInput, node_inputs
from gscope.queries.plan.program_sampling import RATE_COLUMN, NodeSampling, SamplingMethod
from gscope.queries.plan.sampling.epoch_rates import reads_rate
from gscope.queries.plan.sampling.sampled_rows import CannotMove, rows_of_lfta
from gscope.queries.plan.sampling.weighted_sums import RATE, WeightedSums
from gscope.queries.plan.whole_input import is_whole_input

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.queries.plan.program import HftaNode, Lfta, Program
    from gscope.queries.plan.program_sampling import SamplingComponent


def needs_row_rates(program: Program, component: SamplingComponent) -> tuple[str, ...]:
    """Return the LFTAs of a component whose rows have to state the rates of their packets.

    They are read by a node that makes estimates of them, and their columns do not show which
    packets a row is of.
    """
    estimating = {each.query for each in component.nodes if not each.is_whole}
    lftas = map(program.lfta, component.lftas)
    return tuple(
        lfta.name
        for lfta in lftas
        if lfta.sampling is not None
        and not lfta.has_rate_column
        and not rows_of_lfta(lfta).terms
        and any(
            node.query in estimating and isinstance(node, AggregationNode)
            for node in _readers(program, lfta)
        )
    )


def with_component_rates(
    program: Program, component: SamplingComponent, names: Iterable[str]
) -> Program:
    """Return a program in which rows of some LFTAs of a component state their rates.

    Raises:
        CannotMove: a node that reads them needs one rate.
    """
    for name in names:
        lfta = replace(program.lfta(name), has_rate_column=True)
        made = {node.query: _two_nodes(component, lfta, node) for node in _counting(program, lfta)}
        nodes = tuple(n for node in program.nodes for n in made.get(node.query, (node,)))
        sampling = tuple(
            _with_parts(each, made) if each.lftas == component.lftas else each
            for each in program.sampling
        )
        lftas = tuple(lfta if each.name == name else each for each in program.lftas)
        program = replace(program, lftas=lftas, nodes=nodes, sampling=sampling)
    return program


def _with_parts(
    component: SamplingComponent, made: dict[str, tuple[AggregationNode, AggregationNode]]
) -> SamplingComponent:
    """Return a component whose nodes scale nothing that ``made`` scales."""
    nodes: list[NodeSampling] = []
    for each in component.nodes:
        if each.query in made:
            nodes.append(NodeSampling(made[each.query][0].query, False, (), ()))
            each = replace(each, scaled=())
        nodes.append(each)
    return replace(component, nodes=tuple(nodes))


def _readers(program: Program, lfta: Lfta) -> list[HftaNode]:
    return [node for node in program.nodes if StreamInput(lfta.name) in node_inputs(node)]


def _counting(program: Program, lfta: Lfta) -> list[AggregationNode]:
    """Return the nodes that read an LFTA, all of which make estimates.

    Raises:
        CannotMove: something else reads its rows.
    """
    found = []
    for node in _readers(program, lfta):
        if not isinstance(node, AggregationNode):
            message = f"{node.query} reads the rows that are counted elsewhere, as they are"
            raise CannotMove(message)
        found.append(node)
    if any(source == StreamInput(lfta.name) for _, source in program.results):
        message = f"the rows of {lfta.query} are answers, and counted elsewhere"
        raise CannotMove(message)
    return found


def _two_nodes(
    component: SamplingComponent, lfta: Lfta, node: AggregationNode
) -> tuple[AggregationNode, AggregationNode]:
    assert lfta.sampling is not None
    if is_whole_input(node.epoch_expression):
        message = f"{node.query} has no epochs"
        raise CannotMove(message)
    if reads_rate(replace(node, having=None, columns=())):
        message = f"{node.query} groups or chooses packets by sample_rate"
        raise CannotMove(message)
    has_single_packets = lfta.sampling.method is SamplingMethod.TUPLES
    parts = WeightedSums(node, lfta, has_single_packets)
    scaled = frozenset(component.node(node.query).scaled)
    columns = tuple(
        replace(each, expression=parts.estimated(each.expression, scaled)) for each in node.columns
    )
    having = None if node.having is None else parts.estimated(node.having, scaled)
    low = f"{node.query}.{part_names.GROUPS}"
    named = (*node.keys, NamedExpression(RATE_COLUMN, RATE))
    keys = [_schema(key, lfta.stream_schema) for key in named]
    shipped = parts.shipped.values()
    passed = tuple(
        NamedExpression(key.name, Column(key.name, key.type, key.is_nullable)) for key in keys
    )
    values = [ColumnSchema(c.name, c.expression.type, c.expression.is_nullable) for c in shipped]
    groups = replace(
        node,
        query=low,
        keys=named,
        aggregates=tuple(parts.folded.values()),
        having=None,
        columns=(*passed, *shipped),
        schema=Schema((*keys, *values)),
        top=None,
    )
    above = replace(
        node,
        input=QueryInput(low),
        predicate=None,
        keys=passed[:-1],
        aggregates=tuple(parts.summed.values()),
        having=having,
        columns=columns,
    )
    return groups, above


def _schema(key: NamedExpression, schema: Schema) -> ColumnSchema:
    value = key.expression
    ordering = column_ordering(value, lambda column: schema[column.name].ordering)
    return ColumnSchema(key.name, value.type, value.is_nullable, ordering)
