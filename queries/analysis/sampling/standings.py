"""What a sample makes of the rows and columns of each node, and which nodes it would break.

A node's rows are

* a *sample* of those of the full answer, each with probability R: of packets, of a node whose
  compatible set holds the terms of the sample (it is *whole*), of a selection or join of such;
* *estimates*: groups whose packets are kept in part;
* *totals*: estimates of all packets of a time, which a sample loses only if it has none of them.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, assert_never

from gscope.queries.analysis.lineage.terms import is_determined, is_usable, term_of
from gscope.queries.analysis.lineage.traces import MISSING, can_be_missing
from gscope.queries.analysis.sampling.linear import standing_of
from gscope.queries.analysis.sampling.rules import (
    AGGREGATE,
    COMPOSITION,
    ESTIMATED,
    HAVING,
    JOIN,
    LIMIT,
    MERGE,
    OPERATOR,
    OUTER_JOIN,
    RUNNING,
    TOTALS,
    Breach,
)
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.expressions.expressions import Column, PacketField, walk
from gscope.queries.plan.logical import (
    Filter,
    GroupBy,
    Join,
    Merge,
    Project,
    QueryScan,
    RunningGroupBy,
    Scan,
    WatchlistJoin,
    WindowGroupBy,
)
from gscope.queries.plan.program_sampling import SamplingMethod, Standing
from gscope.queries.plan.sample_columns import (
    HIDDEN_AGGREGATE,
    SAMPLE_GROUPS,
    describes_sample,
)
from gscope.queries.plan.sampling_operator import SampleGroupBy
from gscope.queries.plan.show_expressions import show
from gscope.queries.plan.whole_input import is_whole_input
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gscope.queries.analysis.lineage.compatible import CompatibleSets
    from gscope.queries.analysis.lineage.forest import TreeNode
    from gscope.queries.analysis.lineage.terms import Terms
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.logical import AggregateCall


class Rows(Enum):
    """What the rows of a node are; see the head of the module."""

    SAMPLE = "sample"
    ESTIMATES = "estimates"
    TOTALS = "totals"


@dataclass(frozen=True, slots=True)
class Scheme:
    """How the packets of the leaves of a tree are chosen.

    Attributes:
        methods: the method of each stream.
        sets: sets of corresponding terms, over disjoint sets of streams; each stream with GROUPS is
            in one of them.
    """

    methods: Mapping[str, SamplingMethod]
    sets: Sequence[Terms]

    def terms(self, streams: Sequence[str]) -> Terms:
        """Return the corresponding terms of all ``streams``; () if they have none in common."""
        if any(self.methods[stream] is not SamplingMethod.GROUPS for stream in streams):
            return ()
        wanted = set(streams)
        for terms in self.sets:
            if terms and wanted <= set(terms[0].streams):
                return tuple(term.of(wanted) for term in terms)
        return ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a scheme makes of a node.

    Attributes:
        rows: what its rows are.
        is_whole: whether they are rows of the full answer but for estimated columns; only of
            a SAMPLE.
        columns: what each column is.
        scaled: the aggregates that it multiplies by 1/rate.
    """

    rows: Rows
    is_whole: bool
    columns: Mapping[str, Standing]
    scaled: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether its rows are rows of the full answer in all columns."""
        return self.rows is Rows.SAMPLE and set(self.columns.values()) <= {Standing.WHOLE}


class Judge:
    """Judges one scheme at all nodes of a tree.

    Attributes:
        sets: the compatible sets of the tree.
        scheme: the scheme.
        outcomes: what it makes of each node.
        breaches: the nodes that it breaks, lower ones first.
    """

    def __init__(self, sets: CompatibleSets, scheme: Scheme) -> None:
        self.sets = sets
        self.scheme = scheme
        self.outcomes: dict[TreeNode, Outcome] = {}
        self.breaches: list[Breach] = []

    def judge(self, tree: TreeNode) -> None:
        """Judge every node of ``tree``."""
        for each in tree.walk():
            outcome = self._outcome(each)
            self.outcomes[each] = outcome
            order = each.query.order
            if each.is_root and order is not None and order.limit is not None:
                self._breach(each, LIMIT)

    def _breach(self, tree: TreeNode, rule: str, what: str = "") -> None:
        self.breaches.append(Breach(tree, rule, what))

    def _outcome(self, tree: TreeNode) -> Outcome:
        node = tree.node
        match node:
            case Scan():
                is_hashed = self.scheme.methods[tree.stream] is SamplingMethod.GROUPS
                return Outcome(
                    Rows.SAMPLE, is_hashed, dict.fromkeys(node.schema.names, Standing.WHOLE)
                )
            case QueryScan():
                below = self._below(tree)
                return Outcome(below.rows, below.is_whole, below.columns)
            case Filter():
                below = self._below(tree)
                is_having = isinstance(
                    tree.inputs[0].node, GroupBy | RunningGroupBy | WindowGroupBy
                )
                self._check((node.predicate,), tree, HAVING if is_having else ESTIMATED)
                return Outcome(below.rows, below.is_whole, below.columns)
            case Project():
                below = self._below(tree)
                columns = {c.name: self._standing(c.expression, tree) for c in node.columns}
                return Outcome(below.rows, below.is_whole, columns)
            case GroupBy() | RunningGroupBy() | WindowGroupBy():
                return self._of_group(tree, node)
            case SampleGroupBy():
                self._breach(tree, OPERATOR)
                columns = dict.fromkeys(node.schema.names, Standing.ESTIMATED)
                return Outcome(Rows.ESTIMATES, is_whole=False, columns=columns)
            case Merge():
                return self._of_merge(tree)
            case Join():
                return self._of_join(tree, node)
            case WatchlistJoin():
                below = self._below(tree)
                self._check([stream for stream, _ in node.keys], tree, ESTIMATED)
                self._check([node.residual] if node.residual is not None else [], tree, ESTIMATED)
                columns = {c.name: self._standing(c.expression, tree) for c in node.columns}
                rows = below.rows if below.rows is Rows.SAMPLE else Rows.ESTIMATES
                return Outcome(rows, below.is_whole, columns)
            case _:
                assert_never(node)

    def _below(self, tree: TreeNode) -> Outcome:
        return self.outcomes[tree.inputs[0]]

    def _column(self, tree: TreeNode, column: Column) -> Standing:
        if column.input >= len(tree.inputs):
            return Standing.WHOLE  # a table's
        return self.outcomes[tree.inputs[column.input]].columns[column.name]

    def _standing(self, expression: Expression, tree: TreeNode) -> Standing:
        """Return what an output column is; a condition over an estimate is a breach."""
        standing = standing_of(expression, lambda column: self._column(tree, column))
        if standing is None:
            self._breach(tree, ESTIMATED)
            return Standing.ESTIMATED
        counts_groups = describes_sample(expression, frozenset({SAMPLE_GROUPS}))
        if counts_groups and not all(self.outcomes[each].is_exact for each in tree.inputs):
            return Standing.ESTIMATED
        return standing

    def _is_exact(self, expression: Expression, tree: TreeNode) -> bool:
        return all(
            self._column(tree, part) is Standing.WHOLE
            for part in walk(expression)
            if isinstance(part, Column)
        )

    def _check(self, expressions: Iterable[Expression], tree: TreeNode, rule: str) -> None:
        """Note a breach unless all columns of ``expressions`` are those of the full answer."""
        if not all(self._is_exact(each, tree) for each in expressions):
            self._breach(tree, rule)

    def _is_admitted(self, tree: TreeNode) -> bool:
        """Return whether the terms of the sample are in the compatible set of a node."""
        below = (self.outcomes[each] for each in tree.inputs)
        if not all(each.rows is Rows.SAMPLE and each.is_whole for each in below):
            return False
        return self.sets.admits(tree, self.scheme.terms(tree.streams))

    def _of_group(self, tree: TreeNode, node: GroupBy | RunningGroupBy | WindowGroupBy) -> Outcome:
        self._check((key.expression for key in node.keys), tree, ESTIMATED)
        columns = dict.fromkeys(node.schema.names, Standing.WHOLE)
        is_whole = self._is_admitted(tree)
        if isinstance(node, RunningGroupBy) and not is_whole:
            self._breach(tree, RUNNING)
        if isinstance(node, RunningGroupBy) or is_whole:
            return Outcome(Rows.SAMPLE, True, columns)
        below = self._below(tree)
        scaled: list[str] = []
        is_beside_totals = any(
            isinstance(each.node, Join) and not self.outcomes[each].is_whole
            for each in tree.inputs[0].walk()
        )
        for call in node.aggregates:
            if call.name.startswith(HIDDEN_AGGREGATE):
                columns[call.name] = Standing.ESTIMATED
                continue
            if is_beside_totals:
                self._breach(tree, TOTALS, _shown(call))
                standing, is_scaled = Standing.ESTIMATED, False
            elif below.rows is Rows.SAMPLE:
                standing, is_scaled = self._of_sample(call, tree)
            else:
                standing, is_scaled = self._of_estimates(call, tree), False
            columns[call.name] = standing
            scaled += [call.name] if is_scaled else []
        rows = Rows.TOTALS if _is_total(node, tree) else Rows.ESTIMATES
        return Outcome(rows, False, columns, tuple(scaled))

    def _of_estimates(self, call: AggregateCall, tree: TreeNode) -> Standing:
        """Return what an aggregate of estimates is: only their sum is an estimate.

        A sample has no row of a group of which it has no packet. A sum lacks nothing by that; a
        count of rows or an average does.
        """
        standings = [
            standing_of(argument, lambda column: self._column(tree, column))
            for argument in call.arguments
        ]
        if call.function == "sum" and standings == [Standing.SCALED]:
            return Standing.SCALED
        self._breach(tree, COMPOSITION, _shown(call))
        return Standing.ESTIMATED

    def _of_sample(self, call: AggregateCall, tree: TreeNode) -> tuple[Standing, bool]:
        """Return what an aggregate of a group in part is, and whether the node scales it."""
        if not all(self._is_exact(argument, tree) for argument in call.arguments):
            self._breach(tree, ESTIMATED, _shown(call))
            return Standing.ESTIMATED, False
        if call.function in ("count", "sum"):
            return Standing.SCALED, True
        if call.function in _OF_DISTINCT and self._determines_sample(call.arguments[0], tree):
            is_mean = call.function == "avg_distinct"
            return (Standing.ESTIMATED, False) if is_mean else (Standing.SCALED, True)
        entry = AGGREGATES.get(call.function)
        if entry is None or not entry.survives_sampling:
            self._breach(tree, AGGREGATE, _shown(call))
        return Standing.ESTIMATED, False

    def _determines_sample(self, expression: Expression, tree: TreeNode) -> bool:
        """Return whether packets with one value of an expression are all kept, or all not."""
        values = self.sets.traces.values(expression, tree.inputs)
        terms = self.scheme.terms(tree.streams)
        if not terms or set(values) != set(tree.streams) or not is_usable(values):
            return False
        given = (term_of(values),)
        return self._below(tree).is_whole and all(is_determined(term, given) for term in terms)

    def _of_merge(self, tree: TreeNode) -> Outcome:
        inputs = [self.outcomes[each] for each in tree.inputs]
        kinds = {each.rows for each in inputs}
        methods = {self.scheme.methods[stream] for stream in tree.streams}
        is_whole = all(each.is_whole for each in inputs)
        if len(kinds) > 1 or (kinds == {Rows.SAMPLE} and len(methods) > 1):
            self._breach(tree, MERGE)
        if is_whole and len(tree.streams) > 1 and not self.scheme.terms(tree.streams):
            self._breach(tree, MERGE)
        columns: dict[str, Standing] = {}
        for place, name in enumerate(tree.node.schema.names):
            each = {
                o.columns[i.node.schema.names[place]]
                for o, i in zip(inputs, tree.inputs, strict=True)
            }
            columns[name] = each.pop() if len(each) == 1 else Standing.ESTIMATED
        rows = kinds.pop() if len(kinds) == 1 else Rows.ESTIMATES
        return Outcome(rows, is_whole, columns)

    def _of_join(self, tree: TreeNode, join: Join) -> Outcome:
        tested = [each for pair in (join.epochs, *join.keys) for each in pair]
        tested += [] if join.residual is None else [join.residual]
        self._check(tested, tree, ESTIMATED)
        columns = {c.name: self._standing(c.expression, tree) for c in join.columns}
        if self._is_admitted(tree):
            return Outcome(Rows.SAMPLE, True, columns)
        for column in join.columns:
            # A sample can lack the other side where the full answer has it.
            if columns[column.name] is Standing.WHOLE and can_be_missing(column.expression, join):
                columns[column.name] = Standing.ESTIMATED
        kinds = [self.outcomes[each].rows for each in tree.inputs]
        if kinds == [Rows.TOTALS, Rows.TOTALS]:
            return Outcome(Rows.TOTALS, False, columns)
        missing = MISSING[join.kind]
        for side, kind in enumerate(kinds):
            # A total is there for each row of the other side, which may lack nothing else.
            is_beside_total = kind is Rows.SAMPLE and kinds[1 - side] is Rows.TOTALS
            if is_beside_total and side not in missing:
                return Outcome(Rows.SAMPLE, False, columns)
        self._breach(tree, OUTER_JOIN if missing else JOIN)
        return Outcome(Rows.ESTIMATES, False, columns)


_OF_DISTINCT = frozenset(
    {"count_distinct", "approx_count_distinct", "sum_distinct", "avg_distinct"}
)
"""Aggregates over different values, each of which is kept or lost as a whole."""


def _shown(call: AggregateCall) -> str:
    return f"{call.function}({', '.join(map(show, call.arguments)) or '*'})"


def _is_total(node: GroupBy | RunningGroupBy | WindowGroupBy, tree: TreeNode) -> bool:
    """Return whether each epoch or window has one group: no key but times and constants."""
    if isinstance(node, WindowGroupBy):
        return not node.keys
    return all(
        is_whole_input(key.expression) or _is_time(key.expression, tree) for key in node.keys
    )


def _is_time(expression: Expression, tree: TreeNode) -> bool:
    """Return whether every leaf of an expression is a time of packets or a temporal column."""
    parts = [part for part in walk(expression) if isinstance(part, Column | PacketField)]
    schema = tree.inputs[0].node.schema
    return all(part.name in schema and schema[part.name].ordering.is_temporal for part in parts)
