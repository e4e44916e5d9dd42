"""SELECT → trees of logical operators.

SELECT e FROM s WHERE p                        Project(e, Filter(p, s))
SELECT e FROM s WHERE p GROUP BY k HAVING h    Project(e, Filter(h, GroupBy(k, Filter(p, s))))
… CLOSING_WHEN c                               RunningGroupBy(c, …) in place of GroupBy
… SUPERGROUP s CLEANING_WHEN c CLEANING_BY d   SampleGroupBy(s, c, d, h, …) in place of GroupBy
SELECT e FROM s [RANGE r] GROUP BY k           Project(e, WindowGroupBy(k, s))
SELECT DISTINCT e FROM s WHERE p               GroupBy(e, Filter(p, s))
SELECT DISTINCT e FROM s GROUP BY k            GroupBy(e, GroupBy(k, s)), unless e shows all of k
SELECT e FROM s, t WHERE p                     Project(e, Join(p, s, t))

ORDER BY and LIMIT add hidden columns to the projection, and an ``Order`` to the query.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.errors import GsqlError, ResolveError, TypeMismatchError
from gscope.queries.analysis import order_by
from gscope.queries.analysis.groups.epochs import Terms, choose_epoch, terms_of
from gscope.queries.analysis.groups.grouping import Grouping, group_by
from gscope.queries.analysis.groups.sampling import SamplingClauses
from gscope.queries.analysis.groups.sampling_body import check_clauses, is_sampling, plain_where
from gscope.queries.analysis.groups.sampling_sums import computed
from gscope.queries.analysis.joins.join import join_inputs
from gscope.queries.analysis.names.column_names import default_name, unique_names
from gscope.queries.analysis.names.sample_columns import SampleColumns
from gscope.queries.analysis.order_by import (
    OrderedColumns,
    limit_of,
    order_columns,
    order_of_groups,
    order_of_selection,
    order_of_windows,
    refuse_other,
)
from gscope.queries.analysis.sample_by import terms_of_sample
from gscope.queries.analysis.typing.declarations import undeclared
from gscope.queries.analysis.typing.schemas import column_schema
from gscope.queries.analysis.typing.typer import Typer
from gscope.queries.analysis.typing.unsupported import (
    check_where,
    is_grouped,
    refuse_aggregate,
    refuse_unsupported,
)
from gscope.queries.analysis.windows.clauses import after_the_window, with_groups
from gscope.queries.analysis.windows.window_input import open_window
from gscope.queries.expressions.expressions import Column, Literal, NamedExpression
from gscope.queries.expressions.schema import Schema
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql import nodes
from gscope.queries.plan.logical import (
    Filter,
    GroupBy,
    Node,
    Project,
    RunningGroupBy,
    WindowGroupBy,
)
from gscope.queries.plan.row_order import ORDER
from gscope.queries.plan.rules.prune_columns import prune
from gscope.queries.plan.whole_input import is_whole_input, written_keys
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_START
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.analysis.names.scope import Source
    from gscope.queries.analysis.typing.parameters import Substitutes
    from gscope.queries.analysis.windows.window_input import WindowInput
    from gscope.queries.expressions.expressions import Expression, PacketField
    from gscope.queries.expressions.types import Ordering
    from gscope.queries.plan.program_sampling import HintTerm
    from gscope.queries.plan.row_order import Order
    from gscope.queries.plan.sample_columns import SampleColumn
    from gscope.queries.plan.sampling_operator import SampleGroupBy


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """The plan of a SELECT.

    Attributes:
        node: the tree of its operators.
        order: the order of its rows, and how many are kept; see ``LogicalQuery``.
        sample_by: the terms of SAMPLE BY.
        sample_columns: the columns that describe a sample.
    """

    node: Node
    order: Order | None
    sample_by: tuple[HintTerm, ...] = ()
    sample_columns: tuple[SampleColumn, ...] = ()


def build_select(
    body: nodes.Select,
    sources: Sequence[Source],
    substitutes: Substitutes,
    *,
    is_unbounded: bool = False,
    has_time: bool = False,
) -> SelectedRows:
    """Return the plan of a SELECT over ``sources``, its inputs in order.

    Args:
        body: the SELECT.
        sources: its inputs, open for look-up.
        substitutes: the values of ``$x`` and ``#X``.
        is_unbounded: whether the inputs never end, so that a grouping needs a temporal term.
        has_time: whether windows slide over its result, so that groups by window need a hidden
            time.

    Raises:
        GsqlError: the query is wrong or unsupported.
    """
    if len(sources) == 1:
        written, window = body.inputs[0].window, None
        if written is not None:
            body = with_groups(body, sources[0])
            window = open_window(written, sources[0], substitutes)
        select = _Select(body, sources[0], substitutes, is_unbounded, window)
        refuse_unsupported(body)
        rows = select.build()
        return _with_time(rows, window) if window is not None and has_time else rows
    refuse_unsupported(body)
    if is_sampling(body):
        check_clauses(body, is_grouped=True, has_window=False)
    joined = join_inputs(body, sources, substitutes)
    select = _Select(replace(body, where=None), joined, substitutes, is_unbounded)
    rows = select.build()
    return replace(rows, node=prune(rows.node))


def project(
    node: Node,
    columns: Sequence[NamedExpression],
    ordering: Callable[[PacketField | Column], Ordering],
) -> Project:
    """Return the projection of ``node`` to ``columns``, with their types and orderings inferred."""
    return Project(node, tuple(columns), Schema(tuple(column_schema(c, ordering) for c in columns)))


def _with_time(rows: SelectedRows, window: WindowInput) -> SelectedRows:
    """Return the rows of groups by window with the hidden time ``WINDOW_TIME``."""
    root = rows.node
    assert isinstance(root, Project)
    schema = root.input.schema
    # It orders the rows, so a column that was added for that alone is not needed.
    is_ordered = rows.order is not None and rows.order.epoch == ORDER
    columns = (c for c in root.columns if is_ordered or c.name != ORDER)
    node = project(root.input, (window.time(), *columns), lambda leaf: schema[leaf.name].ordering)
    return replace(rows, node=node)


@dataclass(frozen=True, slots=True)
class _Select:
    """One SELECT over one input; a join counts as one.

    Attributes:
        body: the syntax.
        source: the input, open for look-up.
        substitutes: the values of ``$x`` and ``#X``.
        is_unbounded: whether the input never ends, so that a grouping needs a temporal term.
        window: the window over the input, None without one.
    """

    body: nodes.Select
    source: Source
    substitutes: Substitutes
    is_unbounded: bool
    window: WindowInput | None = None

    def _filtered(self) -> Node:
        """Return the input as far as WHERE holds."""
        node: Node = self.source.node
        if self.body.where is None:
            return node
        check_where(self.body.where)
        typer = Typer.over(self.source, self.substitutes, refuse_aggregate, name=self._where_name)
        where = undeclared(typer.condition(self.body.where, "in WHERE"))
        return Filter(node, where, node.schema)

    def build(self) -> SelectedRows:
        if is_sampling(self.body):
            return self._sampled()
        node = self._filtered()
        if is_grouped(self.body):
            return self._grouped(node)
        typer = Typer.over(self.source, self.substitutes, refuse_aggregate)
        sample_by = terms_of_sample(self.body, typer, self.source.node)
        return replace(self._ungrouped(node), sample_by=sample_by)

    def _ungrouped(self, node: Node) -> SelectedRows:
        body = self.body
        if body.having is not None:
            message = "HAVING filters groups, but the query does not group"
            remedy = "write WHERE, or add GROUP BY"
            raise TypeMismatchError(message, position=body.having.position, remedy=remedy)
        typer = Typer.over(self.source, self.substitutes, refuse_aggregate)
        of_sample = SampleColumns(body, self.source)
        columns = self._outputs(of_sample.typer(typer))
        sample_columns = tuple(of_sample.found)
        if body.distinct:
            rows = self._distinct(node, columns, self.source.ordering, typer)
            return replace(rows, sample_columns=sample_columns)
        typer = replace(typer, aggregate=order_by.refuse_aggregate)
        ordered = order_columns(body, columns, typer)
        columns, order = order_of_selection(
            ordered, self._limit(), self.source.ordering, is_unbounded=self.is_unbounded
        )
        rows = SelectedRows(project(node, columns, self.source.ordering), order)
        return replace(rows, sample_columns=sample_columns)

    def _sampled(self) -> SelectedRows:
        """Return the rows of a query with the sampling operator."""
        body = self.body
        has_window = self.window is not None
        check_clauses(body, is_grouped=is_grouped(body), has_window=has_window)
        self._refuse_star()
        if body.where is not None:
            check_where(body.where)
        grouping = Grouping.of(body, self.source, self.substitutes, is_unbounded=self.is_unbounded)
        clauses = SamplingClauses(body, grouping)
        grouping.sampled = clauses.sampled
        where = clauses.where()
        node = replace(self, body=replace(body, where=plain_where(body)))._filtered()
        typer = clauses.select_typer()
        columns = self._outputs(typer)
        ordered = order_columns(body, columns, typer)
        group, quotients = clauses.node(node, where)
        ordered = replace(
            ordered,
            columns=tuple(
                NamedExpression(c.name, computed(c.expression, quotients)) for c in ordered.columns
            ),
        )
        return self._ordered_groups(group, group, ordered, grouping.terms)

    def _refuse_star(self) -> None:
        for output in self.body.outputs:
            if isinstance(output, nodes.Star):
                message = "* is not allowed with groups: a group has many tuples"
                remedy = "name the group-by terms and aggregates"
                raise TypeMismatchError(message, position=output.position, remedy=remedy)

    def _limit(self) -> int | None:
        return limit_of(self.body, self.substitutes)

    def _grouped(self, node: Node) -> SelectedRows:
        body = self.body
        self._refuse_star()
        grouping = Grouping.of(
            body,
            self.source,
            self.substitutes,
            is_unbounded=self.is_unbounded,
            window=self.window,
        )
        typer = grouping.typer()
        of_sample = SampleColumns(body, self.source)
        columns = self._outputs(of_sample.typer(typer))
        typer = of_sample.typer_of_conditions(typer)
        having = None if body.having is None else typer.condition(body.having, "in HAVING")
        closing = None
        if body.closing_when is not None:
            closing = typer.condition(body.closing_when, "in CLOSING_WHEN")
        ordered = order_columns(body, columns, typer)
        group = grouping.node(node, closing)
        sample_by = terms_of_sample(body, typer, group)
        above: Node = group
        if having is not None:
            above = Filter(above, having, above.schema)

        def ordering(leaf: PacketField | Column) -> Ordering:
            return group.schema[leaf.name].ordering

        if body.distinct and not _shows_keys(group, columns, grouping.terms):
            if isinstance(group, WindowGroupBy):
                rows = self._distinct_in_windows(above, columns, ordering, typer)
            else:
                rows = self._distinct(above, columns, ordering, typer)
        else:
            rows = self._ordered_groups(above, group, ordered, grouping.terms)
        return replace(rows, sample_by=sample_by, sample_columns=tuple(of_sample.found))

    def _ordered_groups(
        self,
        node: Node,
        group: GroupBy | RunningGroupBy | WindowGroupBy | SampleGroupBy,
        ordered: OrderedColumns,
        terms: Terms,
    ) -> SelectedRows:
        """Return the rows of ``group``, as ``node`` filters them, with their order."""

        def ordering(leaf: PacketField | Column) -> Ordering:
            return group.schema[leaf.name].ordering

        if isinstance(group, WindowGroupBy):
            start, end = (
                Column(c.name, c.type, c.is_nullable)
                for c in (group.schema[WINDOW_START], group.schema[WINDOW_END])
            )
            columns, order = order_of_windows(ordered, self._limit(), (start, end), ordering)
            return SelectedRows(project(node, columns, ordering), order)
        epoch = group.schema[group.epoch]
        is_whole = any(
            key.name == group.epoch and is_whole_input(key.expression) for key in group.keys
        )
        columns, order = order_of_groups(
            ordered,
            self._limit(),
            None if is_whole else Column(epoch.name, epoch.type, epoch.is_nullable),
            None if is_whole else terms.column(epoch.name),
            ordering,
        )
        return SelectedRows(project(node, columns, ordering), order)

    def _distinct_in_windows(
        self,
        node: Node,
        columns: Sequence[NamedExpression],
        ordering: Callable[[PacketField | Column], Ordering],
        typer: Typer,
    ) -> SelectedRows:
        """Return the distinct rows of each window over groups: its end is the epoch."""
        end = node.schema[WINDOW_END]
        ends = NamedExpression(end.name, Column(end.name, end.type, end.is_nullable))
        terms = Terms((ends, *columns), (ends, *columns))
        keys = [column_schema(c, ordering) for c in terms.keys]
        group = group_by(node, terms.keys, keys, WINDOW_END, ())
        return self._ordered_groups(group, group, self._reordered(columns, terms, typer), terms)

    def _distinct(
        self,
        node: Node,
        columns: Sequence[NamedExpression],
        ordering: Callable[[PacketField | Column], Ordering],
        typer: Typer,
    ) -> SelectedRows:
        terms = terms_of(columns, ordering)
        keys = [column_schema(c, ordering) for c in terms.keys]
        expressions = [c.expression for c in terms.keys]
        epoch = choose_epoch(
            keys,
            expressions,
            node.schema,
            self.body.position,
            is_distinct=True,
            is_unbounded=self.is_unbounded,
        )
        group = group_by(node, terms.keys, keys, epoch, ())
        is_plain = terms.turned is None and not terms.cores and epoch is not None
        if is_plain and not self.body.order_by and self.body.limit is None:
            return SelectedRows(group, None)
        return self._ordered_groups(group, group, self._reordered(columns, terms, typer), terms)

    def _reordered(
        self, columns: Sequence[NamedExpression], terms: Terms, typer: Typer
    ) -> OrderedColumns:
        """Return the columns of SELECT DISTINCT over its groups, and those that ORDER BY adds."""
        shown = tuple(NamedExpression(c.name, terms.column(c.name)) for c in columns)

        def known(node: nodes.Expression) -> Expression | None:
            """Return the column that is computed as ``node``."""
            try:
                meaning = typer.type(node)
            except GsqlError:
                return None
            same = (c.name for c in columns if c.expression == meaning)
            return next((terms.column(name) for name in same), None)

        return order_columns(self.body, shown, replace(typer, name=refuse_other, known=known))

    def _outputs(self, typer: Typer) -> tuple[NamedExpression, ...]:
        expressions: list[Expression] = []
        wanted: list[tuple[str, bool, nodes.Node]] = []
        for output in self.body.outputs:
            if isinstance(output, nodes.Star):
                for star, meaning in self.source.star(output):
                    expressions.append(meaning)
                    wanted.append((star, False, output))
                continue
            expression = typer.type(output.expression)
            if expression.type is GsqlType.NULL:
                expression = Literal(None, GsqlType.INT)
            expressions.append(expression)
            name = output.name or default_name(output.expression, self.source)
            wanted.append((name, output.name is not None, output))
        names = unique_names(wanted)
        return tuple(NamedExpression(n, e) for n, e in zip(names, expressions, strict=True))

    def _where_name(self, name: nodes.Name) -> Expression:
        try:
            return self.source.resolve(name)
        except ResolveError as error:
            if self.window is not None:
                error.remedy = after_the_window(name.parts[-1], "test it in HAVING") or error.remedy
            aliases = [t.name for t in self.body.group_by] + [
                o.name for o in self.body.outputs if isinstance(o, nodes.OutputItem)
            ]
            if len(name.parts) == 1 and name.parts[0] in aliases:
                error.remedy = (
                    f"{name.parts[0]} is computed after WHERE: repeat its expression here, or test "
                    "it in HAVING"
                )
            raise


def _shows_keys(
    group: GroupBy | RunningGroupBy | WindowGroupBy,
    columns: Sequence[NamedExpression],
    terms: Terms,
) -> bool:
    """Return whether rows are distinct already, because they show all keys."""
    shown = {c.expression for c in columns}
    if isinstance(group, WindowGroupBy):
        keys: Sequence[NamedExpression] = group.keys
    else:
        keys = written_keys(group.keys, group.epoch)
    return all(terms.column(key.name) in shown for key in keys)
