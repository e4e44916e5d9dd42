"""``sample_groups``, ``x_low`` and ``x_high``: what they are in a sample, as a rewrite of the plan.

An interval is x ± 1.96·√V, where V is the estimated variance. Of a total of counts and sums, with
Q the sum of squares over the units of the sample (``products``) and p its rate::

    V = (1 - p)/p² · Q

Of a ratio r = Y/X of such totals, Q is the sum of squares of what units add to Y - r·X, and V is
(1 - p)·Q/X², with X as it is in the sample. Exact columns are their own interval.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from gscope.errors import UnsupportedError
from gscope.queries.analysis.lineage.terms import is_natural
from gscope.queries.analysis.sampling.linear import standing_of
from gscope.queries.analysis.sampling.products import (
    HiddenAggregates,
    Products,
    linear_form,
    number,
    ratio_form,
    times,
    totals_of,
)
from gscope.queries.analysis.sampling.standings import Rows
from gscope.queries.analysis.sampling.units import NoUnits, bucket_of, units_of
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Call, Expression, Literal
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.logical import Filter, GroupBy, Project, QueryScan, WindowGroupBy
from gscope.queries.plan.program_sampling import Standing
from gscope.queries.plan.sample_columns import (
    HIDDEN_AGGREGATE,
    OF_SAMPLE,
    SAMPLE_GROUPS,
    SampleColumn,
    describes_sample,
    exact_end,
    interval_end,
    is_low_end,
    sample_groups,
    variance_factor,
)
from gscope.queries.plan.trees import map_expression, map_nodes
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.analysis.lineage.forest import TreeNode
    from gscope.queries.analysis.sampling.products import Linear
    from gscope.queries.analysis.sampling.query_sets import QuerySetSampling
    from gscope.queries.analysis.sampling.standings import Judge
    from gscope.queries.analysis.sampling.units import Units
    from gscope.queries.plan.logical import AggregateCall, LogicalPlan, LogicalQuery, Node

_Z = 1.959963984540054
"""Between -z and z lie 95% of a normal distribution."""

_ONE = Literal(1, GsqlType.INT)

Decided: TypeAlias = tuple[Project, tuple[SampleColumn, ...]]
"""A projection with its columns that describe a sample, and these with what they rest on."""


def with_sample_columns(plan: LogicalPlan, found: QuerySetSampling) -> LogicalPlan:
    """Return a plan in which columns that describe a sample are those of its schemes.

    Args:
        plan: the queries.
        found: the schemes of the results of this plan.

    Raises:
        UnsupportedError: an interval or a number of groups cannot be computed.
    """
    queries = tuple(
        _decided(query, found) if query.sample_columns else query for query in plan.queries
    )
    return replace(plan, queries=queries)


def _decided(query: LogicalQuery, found: QuerySetSampling) -> LogicalQuery:
    """Return a query in which these columns are those of the schemes that it is sampled by."""
    decisions: list[Decided] = []
    for placed in found.placed:
        if placed.tree is None or placed.refusal:
            continue
        judge = found.judge(placed)
        for tree in placed.tree.walk():
            if tree.query.name == query.name and _shows_columns(tree.node):
                decision = _SampledProject(tree, judge, query).decided()
                if decision not in decisions:
                    decisions.append(decision)
    if len(decisions) > 1:
        names = " and ".join(dict.fromkeys(column.name for column in query.sample_columns))
        message = f"results that read {query.name} sample it in different ways"
        remedy = f"leave {names} out, or read copies of the query under different names"
        _refuse(query.sample_columns[0], message, remedy)
    columns = tuple(replace(column, basis="") for column in query.sample_columns)
    if decisions:
        made, columns = decisions[0]

    def change(node: Node) -> Node:
        if not isinstance(node, Project) or not _shows_columns(node):
            return node
        return made if decisions else _as_exact(node)

    return replace(query, root=map_nodes(query.root, change), sample_columns=columns)


def _shows_columns(node: Node) -> bool:
    return isinstance(node, Project) and any(
        describes_sample(column.expression) for column in node.columns
    )


def _as_exact(project: Project) -> Project:
    """Return a projection whose columns that describe a sample are those of an exact answer."""
    columns = tuple(
        replace(each, expression=map_expression(each.expression, _exact))
        for each in project.columns
    )
    below = _with_aggregates(project.input, None)
    return replace(project, columns=columns, input=below)


def _exact(part: Expression) -> Expression:
    if not isinstance(part, Call) or part.function not in OF_SAMPLE:
        return part
    if part.function == SAMPLE_GROUPS:
        return sample_groups(_ONE)
    return exact_end(part.arguments[0], is_low=is_low_end(part))


@dataclass(slots=True)
class _SampledProject:
    """The projection of a query with columns that describe a sample, in one result.

    Attributes:
        tree: the projection.
        judge: what the scheme of the result makes of its nodes.
        query: the query.
    """

    tree: TreeNode
    judge: Judge
    query: LogicalQuery

    def decided(self) -> Decided:
        """Return the projection with these columns as they are in the sample."""
        project = self.tree.node
        assert isinstance(project, Project)
        project = _as_exact(project)
        group = self._group()
        aggregates = HiddenAggregates([])
        units: Units | NoUnits | None = None
        if group is not None:
            assert isinstance(group.node, GroupBy | WindowGroupBy)
            aggregates.calls = _plain(group.node.aggregates)
            if self._reads_sample(group):
                units = units_of(group, self.judge)
        bases: dict[tuple[str, Expression], str] = {}

        def change(part: Expression) -> Expression:
            if not isinstance(part, Call) or part.function not in OF_SAMPLE:
                return part
            if self._is_exact(part):
                return part
            column = self._column(part)
            if units is None:
                self._refuse_elsewhere(column)
            if isinstance(units, NoUnits):
                message = f"{column.name} cannot be computed: {units.message}"
                _refuse(column, message, units.remedy)
            bases[column.function, column.value] = units.basis
            return _Formula(aggregates, units, column).of(part)

        columns = tuple(
            replace(each, expression=map_expression(each.expression, change))
            for each in project.columns
        )
        below = _with_aggregates(project.input, aggregates.calls)
        noted = tuple(
            replace(each, basis=bases.get((each.function, each.value), ""))
            for each in self.query.sample_columns
        )
        return replace(project, columns=columns, input=below), noted

    def _group(self) -> TreeNode | None:
        """Return the grouping below the projection; None if it is not directly below."""
        (below,) = self.tree.inputs
        while isinstance(below.node, Filter):
            (below,) = below.inputs
        return below if isinstance(below.node, GroupBy | WindowGroupBy) else None

    def _reads_sample(self, group: TreeNode) -> bool:
        """Return whether a grouping makes estimates of the rows of a sample."""
        below = self.judge.outcomes[group.inputs[0]]
        return below.rows is Rows.SAMPLE and not self.judge.outcomes[group].is_whole

    def _is_exact(self, part: Call) -> bool:
        below = self.judge.outcomes[self.tree.inputs[0]]
        if part.function == SAMPLE_GROUPS:
            return below.is_exact
        value = part.arguments[0]
        return standing_of(value, lambda c: below.columns[c.name]) is Standing.WHOLE

    def _column(self, part: Call) -> SampleColumn:
        return next(column for column in self.query.sample_columns if column.is_of(part))

    def _refuse_elsewhere(self, column: SampleColumn) -> NoReturn:
        names = sorted(
            {
                each.node.query
                for each in self.tree.walk()
                if each.query.name == self.query.name and isinstance(each.node, QueryScan)
            }
        )
        message = f"{column.name} cannot be computed: {self.query.name} reads estimates"
        where = " or ".join(names) or "the query that makes the estimate"
        remedy = f"write it in SELECT of {where}, and read it from there as a column"
        _refuse(column, message, remedy)


@dataclass(frozen=True, slots=True)
class _Formula:
    """How a column that describes a sample is computed above a grouping.

    Attributes:
        aggregates: the aggregates of the grouping, to which others are added.
        units: the units of the sample in the rows that it reads.
        column: the column, for errors.
    """

    aggregates: HiddenAggregates
    units: Units
    column: SampleColumn

    def of(self, part: Call) -> Expression:
        """Return the column."""
        if part.function == SAMPLE_GROUPS:
            return sample_groups(self._groups())
        value = part.arguments[0]
        plain = _plain(self.aggregates.calls)
        calls, totals = {each.name: each for each in plain}, totals_of(plain)
        is_low = is_low_end(part)
        form = linear_form(value, totals)
        if form is not None:
            least = value if all(map(_is_added, form.items())) else None
            return interval_end(value, self._of_total(form), least, is_low=is_low)
        ratio = ratio_form(value, calls, totals)
        if ratio is None:
            message = f"{self.column.name} cannot be computed: no formula has its variance"
            remedy = (
                "intervals are those of counts and sums, their sums and differences, averages, and"
                " the ratio of two of them"
            )
            _refuse(self.column, message, remedy)
        return interval_end(value, self._of_ratio(value, *ratio), None, is_low=is_low)

    def _groups(self) -> Expression:
        if self.units.hash is None:
            return self.aggregates.column("count")
        return self.aggregates.column("count_distinct", self.units.hash)

    def _products(self) -> Products:
        bucket = None if self.units.hash is None else bucket_of(self.units)
        return Products(self.aggregates, bucket)

    def _of_total(self, form: Linear) -> Expression:
        """Return z²·(1 - p)/p²·Q."""
        factor = times(number(_Z * _Z), variance_factor())
        return times(self._products().of_forms(form, form), factor)

    def _of_ratio(self, ratio: Expression, above: Linear, below: Linear) -> Expression:
        """Return z²·(1 - p)·Q/X², where Q = Σy² - 2r·Σxy + r²·Σx²."""
        products = self._products()
        mixed = times(times(number(2.0), ratio), products.of_forms(above, below))
        squares = times(times(ratio, ratio), products.of_forms(below, below))
        residual = call(
            "add_float", call("sub_float", products.of_forms(above, above), mixed), squares
        )
        divisor = self.aggregates.linear(below)
        relative = call("div_float", residual, times(divisor, divisor))
        left_out = call("sub_float", number(1.0), call("sample_rate"))
        return times(relative, times(number(_Z * _Z), left_out))


def _is_added(part: tuple[tuple[str, tuple[Expression, ...]], float]) -> bool:
    """Return whether a total only grows with each row, so that all packets have at least it."""
    (function, arguments), factor = part
    return factor >= 0 and (function == "count" or is_natural(arguments[0]))


def _plain(calls: Sequence[AggregateCall]) -> list[AggregateCall]:
    """Return the aggregates that a query names."""
    return [each for each in calls if not each.name.startswith(HIDDEN_AGGREGATE)]


def _with_aggregates(node: Node, calls: Sequence[AggregateCall] | None) -> Node:
    """Return a node with other aggregates in the grouping below its conditions, if there is one.

    Args:
        node: the input of a projection.
        calls: the aggregates; None for those that the query names.
    """
    if isinstance(node, Filter):
        below = _with_aggregates(node.input, calls)
        return replace(node, input=below, schema=below.schema)
    if not isinstance(node, GroupBy | WindowGroupBy):
        return node
    calls = _plain(node.aggregates) if calls is None else calls
    names = {each.name for each in node.aggregates}
    columns = (
        *(column for column in node.schema.columns if column.name not in names),
        *(ColumnSchema(each.name, each.type, each.is_nullable) for each in calls),
    )
    return replace(node, aggregates=tuple(calls), schema=Schema(columns))


def _refuse(column: SampleColumn, message: str, remedy: str) -> NoReturn:
    error = UnsupportedError(message, position=column.position, remedy=remedy)
    raise error.located(column.text, column.source)
