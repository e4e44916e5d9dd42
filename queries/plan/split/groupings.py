"""The split of a grouping.

It becomes an LFTA that folds partials or ships rows, and the HFTA node above it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Column, NamedExpression
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.plan.logical import RunningGroupBy
from gscope.queries.plan.program import AggregationNode, RunningNode, StreamInput
from gscope.queries.plan.split.border import Border, can_group_by, column_schema, is_low
from gscope.queries.plan.split.layers import all_columns, first_rows_of_epochs
from gscope.queries.plan.split.partials import Partials
from gscope.queries.plan.split.running import (
    add_partials,
    aggregates_of_rows,
    can_run_epochs_low,
    epoch_calls,
)
from gscope.queries.plan.trees import conjunction
from gscope.queries.plan.whole_input import is_whole_input, whole_input_schema
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.logical import GroupBy, LogicalQuery
    from gscope.queries.plan.program import Aggregate, Input, Lfta, RunningAggregate
    from gscope.queries.plan.split.layers import Layers, Site


def can_group_low(group: GroupBy | RunningGroupBy) -> bool:
    """Return whether an LFTA can fold partials of the whole grouping."""
    epoch = next(k.expression for k in group.keys if k.name == group.epoch)
    are_low = all(can_group_by(key.expression) for key in group.keys)
    return is_low(epoch) and are_low and can_run_epochs_low(epoch_calls(group).calls)


def group_low(
    site: Site, layers: Layers, group: GroupBy | RunningGroupBy
) -> tuple[Lfta, AggregationNode | RunningNode]:
    """Return an LFTA that folds partials, and the node that combines them."""
    border = Border()
    keys = tuple(NamedExpression(k.name, border.lift(k.expression, k.name)) for k in group.keys)
    epoch_key = next(k.expression for k in keys if k.name == group.epoch)
    schemas: dict[str, ColumnSchema] = {}
    if is_whole_input(epoch_key):
        # The node computes constants itself, but the group table needs an epoch.
        epoch_key = border.ship(epoch_key, group.epoch)
        schemas[epoch_key.name] = whole_input_schema(epoch_key.name)
    assert isinstance(epoch_key, Column)
    partials = Partials(border)
    each = epoch_calls(group)
    aggregates = add_partials(each.calls, partials)
    columns = (
        *(schemas.get(c.name) or column_schema(c) for c in border.columns),
        *(ColumnSchema(p.name, p.type, p.is_nullable) for p in partials.made),
    )
    lfta = site.lfta(
        keys=border.columns,
        epoch=epoch_key.name,
        partials=tuple(partials.made),
        schema=Schema(columns),
        has_interface_column=border.has_interface,
    )
    final = _FinalHalf(StreamInput(lfta.name), keys, aggregates, each.running)
    return lfta, final.node(site.query, layers, group)


def group_rows(
    site: Site,
    layers: Layers,
    group: GroupBy | RunningGroupBy,
    high: tuple[Expression, ...],
) -> tuple[Lfta, AggregationNode | RunningNode]:
    """Return an LFTA that ships rows, and the node that tests ``high`` and groups them."""
    border = Border()
    predicate = conjunction([border.lift(p) for p in high])
    keys = tuple(NamedExpression(k.name, border.lift(k.expression, k.name)) for k in group.keys)
    each = epoch_calls(group)
    aggregates = aggregates_of_rows(each.calls, border.lift)
    lfta = site.selection(border)
    final = _FinalHalf(StreamInput(lfta.name), keys, aggregates, each.running, predicate)
    return lfta, final.node(site.query, layers, group)


def group_stream(
    query: LogicalQuery, layers: Layers, group: GroupBy | RunningGroupBy, source: Input
) -> AggregationNode | RunningNode:
    """Return the node of a grouping over the rows of ``source``."""
    each = epoch_calls(group)
    aggregates = aggregates_of_rows(each.calls)
    final = _FinalHalf(source, group.keys, aggregates, each.running, layers.predicate)
    return final.node(query, layers, group)


@dataclass(frozen=True, slots=True)
class _FinalHalf:
    """The half of a grouping that an HFTA node computes, over the columns of its input.

    Attributes:
        source: the input.
        keys: the group-by terms.
        aggregates: the aggregates of each epoch.
        running: the aggregates with state, over ``aggregates``.
        predicate: the condition on rows of the input, None for all.
    """

    source: Input
    keys: tuple[NamedExpression, ...]
    aggregates: tuple[Aggregate, ...]
    running: tuple[RunningAggregate, ...]
    predicate: Expression | None = None

    def node(
        self, query: LogicalQuery, layers: Layers, group: GroupBy | RunningGroupBy
    ) -> AggregationNode | RunningNode:
        """Return the node of ``group``, with HAVING and the output of ``layers``."""
        if isinstance(group, RunningGroupBy):
            return RunningNode(
                query=query.name,
                input=self.source,
                predicate=self.predicate,
                keys=self.keys,
                epoch=group.epoch,
                aggregates=self.aggregates,
                running=self.running,
                closing=group.closing,
                having=layers.having,
                columns=layers.columns or all_columns(group),
                schema=query.schema,
            )
        return AggregationNode(
            query=query.name,
            input=self.source,
            predicate=self.predicate,
            keys=self.keys,
            epoch=group.epoch,
            aggregates=self.aggregates,
            having=layers.having,
            columns=layers.columns or all_columns(group),
            schema=query.schema,
            top=first_rows_of_epochs(query),
        )
