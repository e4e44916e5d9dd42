"""The split of windows: an LFTA that folds slices or ships rows, and the node that assembles them.

SELECT srcIP, count(*) FROM TCP [RANGE 18 SLIDE 15] GROUP BY srcIP becomes

    LFTA: GROUP BY $slice := time FLOOR_DIV 15 + (time - 12) FLOOR_DIV 15 + 1, srcIP;
          count0 := count(*)
    WindowNode: srcIP, sum(count0) of the slices of each window
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.expressions.expressions import Column, Expression, NamedExpression
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.plan.program import Partial, StreamInput
from gscope.queries.plan.split.border import Border, can_group_by, column_schema, is_low
from gscope.queries.plan.split.layers import all_columns, first_rows_of_epochs
from gscope.queries.plan.split.partials import Partials, can_run_low
from gscope.queries.plan.split.running import aggregates_of_rows
from gscope.queries.plan.trees import conjunction
from gscope.queries.plan.window_node import Slices, WindowNode
from gscope.queries.plan.windows.columns import SLICE
from gscope.queries.plan.windows.window_plan import WindowPlan
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.plan.logical import LogicalQuery, WindowGroupBy
    from gscope.queries.plan.program import Aggregate, Input, Lfta
    from gscope.queries.plan.split.layers import Layers, Site
    from gscope.queries.plan.split.slice_classes import SliceClass
    from gscope.queries.plan.windows.window import Window

Lift = Callable[[Expression, str], Expression]
"""Returns an expression over the columns of an input; the name is for a new one of them."""


def can_slice_low(group: WindowGroupBy) -> bool:
    """Return whether an LFTA can fold the slices of ``group``."""
    are_low = all(can_group_by(key.expression) for key in group.keys)
    return is_low(group.on) and are_low and all(map(can_run_low, group.aggregates))


@dataclass(frozen=True, slots=True)
class LowSlices:
    """The slices of a class as its LFTA folds them, and what each member makes of them.

    Attributes:
        shared: the class.
        columns: the keys of the LFTA, the slice's number first.
        schema: the columns of its output.
        partials: the partials of all members.
        has_interface: whether a member groups by interface.
        keys: the group-by terms of each member, over the output.
        aggregates: the final halves of the aggregates of each member.
    """

    shared: SliceClass
    columns: tuple[NamedExpression, ...]
    schema: Schema
    partials: tuple[Partial, ...]
    has_interface: bool
    keys: dict[WindowGroupBy, tuple[NamedExpression, ...]]
    aggregates: dict[WindowGroupBy, tuple[Aggregate, ...]]

    @classmethod
    def of(cls, shared: SliceClass) -> LowSlices:
        """Return the slices of a class."""
        border = Border()
        border.ship(shared.slicing.expression(shared.on), SLICE)
        # Keys first, so that no partial takes the name of one.
        keys = {
            member: tuple(
                NamedExpression(k.name, border.lift(k.expression, k.name)) for k in member.keys
            )
            for member in shared.members
        }
        partials = Partials(border)
        aggregates = {m: tuple(map(partials.add, m.aggregates)) for m in shared.members}
        schema = (
            *map(column_schema, border.columns),
            *(ColumnSchema(p.name, p.type, p.is_nullable) for p in partials.made),
        )
        return cls(
            shared,
            border.columns,
            Schema(schema),
            tuple(partials.made),
            border.has_interface,
            keys,
            aggregates,
        )

    def split(self, site: Site, layers: Layers, group: WindowGroupBy) -> tuple[Lfta, WindowNode]:
        """Return the LFTA of the class and the node of one of its members."""
        lfta = site.lfta(
            keys=self.columns,
            epoch=SLICE,
            partials=self.partials,
            schema=self.schema,
            has_interface_column=self.has_interface,
        )
        own = {name for aggregate in self.aggregates[group] for name in aggregate.partials}
        of_partials = {partial.name for partial in self.partials}
        slices = Slices(
            slicing=self.shared.slicing,
            number=_column(self.schema[SLICE]),
            keys=tuple(
                NamedExpression(c.name, _column(c))
                for c in lfta.stream_schema.columns
                if c.name != SLICE and c.name not in of_partials
            ),
            partials=tuple(
                replace(p, argument=_column(self.schema[p.name]))
                for p in self.partials
                if p.name in own
            ),
            is_merged=True,
        )
        final = _FinalHalf(
            window=self.shared.window(group),
            unit_ns=self.shared.unit_ns,
            slices=slices,
            keys=self.keys[group],
            aggregates=self.aggregates[group],
        )
        return lfta, final.node(site.query, layers, group, StreamInput(lfta.name))


def _column(schema: ColumnSchema) -> Column:
    return Column(schema.name, schema.type, schema.is_nullable)


def ship_rows(
    site: Site,
    layers: Layers,
    group: WindowGroupBy,
    high: tuple[Expression, ...],
    plan: WindowPlan,
) -> tuple[Lfta, WindowNode]:
    """Return an LFTA that ships rows, and the node that tests ``high`` and groups them."""
    border = Border()
    predicate = conjunction([border.lift(p) for p in high])
    final = _over_rows(group, plan, border.lift)
    lfta = site.selection(border)
    return lfta, final.node(site.query, layers, group, StreamInput(lfta.name), predicate)


def window_stream(
    query: LogicalQuery, layers: Layers, group: WindowGroupBy, source: Input, plan: WindowPlan
) -> WindowNode:
    """Return the node of windows over the rows of ``source``."""
    return _over_rows(group, plan).node(query, layers, group, source, layers.predicate)


def _over_rows(
    group: WindowGroupBy, plan: WindowPlan, lift: Lift = lambda expression, _: expression
) -> _FinalHalf:
    """Return the node's half of windows over plain rows.

    Args:
        group: the windows.
        plan: how they are computed.
        lift: returns an expression of ``group`` over the columns of the input.
    """
    on = lift(group.on, "")
    have_partials = (AGGREGATES[c.function].has_partials(c.arguments) for c in group.aggregates)
    if plan is WindowPlan.SUPERQUERY or not all(have_partials):
        return _FinalHalf(
            window=group.window,
            unit_ns=group.unit_ns,
            on=on,
            keys=tuple(NamedExpression(k.name, lift(k.expression, k.name)) for k in group.keys),
            aggregates=aggregates_of_rows(group.aggregates, lambda each: lift(each, "")),
        )
    # Whether a sum needs one partial or two halves shows in fields of packets, not in columns.
    groups = Border()
    keys = tuple(NamedExpression(k.name, groups.ship(k.expression, k.name)) for k in group.keys)
    partials = Partials(groups)
    aggregates = tuple(map(partials.add, group.aggregates))
    slicing = plan.slicing([group.window])
    slices = Slices(
        slicing=slicing,
        number=slicing.expression(on),
        keys=tuple(NamedExpression(name, lift(e, name)) for e, name in groups.shipped.items()),
        partials=tuple(
            replace(p, argument=None if p.argument is None else lift(p.argument, ""))
            for p in partials.made
        ),
        is_merged=False,
    )
    return _FinalHalf(
        window=group.window,
        unit_ns=group.unit_ns,
        on=on,
        slices=slices,
        keys=keys,
        aggregates=aggregates,
    )


@dataclass(frozen=True, slots=True)
class _FinalHalf:
    """The half of a window that an HFTA node computes.

    Attributes:
        window: see ``WindowNode``, as for all that follow.
    """

    window: Window
    unit_ns: int | None
    keys: tuple[NamedExpression, ...]
    aggregates: tuple[Aggregate, ...]
    on: Expression | None = None
    slices: Slices | None = None

    def node(
        self,
        query: LogicalQuery,
        layers: Layers,
        group: WindowGroupBy,
        source: Input,
        predicate: Expression | None = None,
    ) -> WindowNode:
        """Return the node of ``group`` over ``source``.

        It has HAVING and the output of ``layers``.
        """
        return WindowNode(
            query=query.name,
            input=source,
            predicate=predicate,
            window=self.window,
            on=self.on,
            unit_ns=self.unit_ns,
            slices=self.slices,
            keys=self.keys,
            aggregates=self.aggregates,
            having=layers.having,
            columns=layers.columns or all_columns(group),
            schema=query.schema,
            top=first_rows_of_epochs(query),
        )
