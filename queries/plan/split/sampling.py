"""The split of the sampling operator: an LFTA that ships tuples, and the HFTA node above it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import NamedExpression, PacketField
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import StreamInput
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.split.border import Border
from gscope.queries.plan.split.layers import all_columns
from gscope.queries.plan.trees import conjunction
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.logical import LogicalQuery
    from gscope.queries.plan.program import Input, Lfta
    from gscope.queries.plan.sampling_operator import SampleGroupBy
    from gscope.queries.plan.split.layers import Layers, Site


def sample_packets(
    site: Site, layers: Layers, group: SampleGroupBy, high: tuple[Expression, ...]
) -> tuple[Lfta, SampleNode]:
    """Return an LFTA that ships tuples, and the node that tests ``high`` and samples them."""
    border = Border()
    predicate = conjunction([border.lift(p) for p in high])
    keys = tuple(NamedExpression(k.name, border.lift(k.expression, k.name)) for k in group.keys)
    values = tuple(
        NamedExpression(v.name, border.lift(v.expression)) for v in group.sampling.values
    )
    order = border.ship(PacketField("time_ns", GsqlType.INT, is_nullable=False))
    lifted = replace(group, keys=keys, sampling=replace(group.sampling, values=values))
    lfta = site.selection(border)
    return lfta, _node(
        site.query, layers, lifted, _Tuples(StreamInput(lfta.name), predicate, order)
    )


def sample_stream(
    query: LogicalQuery, layers: Layers, group: SampleGroupBy, source: Input
) -> SampleNode:
    """Return the node that samples the rows of ``source``."""
    return _node(query, layers, group, _Tuples(source, layers.predicate))


@dataclass(frozen=True, slots=True)
class _Tuples:
    """The tuples that a node reads: its input, the condition on them, and their time."""

    source: Input
    predicate: Expression | None
    order: Expression | None = None


def _node(
    query: LogicalQuery,
    layers: Layers,
    group: SampleGroupBy,
    tuples: _Tuples,
) -> SampleNode:
    assert layers.having is None, "no filter moves into a sample"
    return SampleNode(
        query=query.name,
        input=tuples.source,
        predicate=tuples.predicate,
        keys=group.keys,
        epoch=group.epoch,
        order=tuples.order,
        sampling=group.sampling,
        columns=layers.columns or all_columns(group),
        schema=query.schema,
    )
