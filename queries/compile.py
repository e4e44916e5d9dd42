"""Query texts → program, with every stage kept for ``explain``.

What samples packets or divides them is imported by query sets that need it: a third of the modules.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from gscope.errors import UnsupportedError
from gscope.queries.analysis.analyze import analyze
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.hidden_order import with_order
from gscope.queries.plan.program import QueryInput
from gscope.queries.plan.rules.optimize import optimize
from gscope.queries.plan.split.pre_samples import with_pre_samples
from gscope.queries.plan.split.share import share
from gscope.queries.plan.split.split import split
from gscope.queries.plan.trees import scans
from gscope.queries.plan.windows.window_plan import WindowPlan
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.analysis.partitioning.sets import PartitionSet
    from gscope.queries.plan.logical import LogicalPlan
    from gscope.queries.plan.program import Program
    from gscope.queries.plan.sampling.moving_samples import MovingSample
    from gscope.queries.plan.sampling.report import SamplingReport


_MOST_SCHEMES = 4
"""How often a query set is compiled until its columns that describe a sample fit its schemes."""


@dataclass(frozen=True, slots=True)
class QueryText:
    """A text with queries, and its name in messages (a file name, ``-e``)."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class CompileContext:
    """The context that a query set is compiled in.

    Attributes:
        interfaces: the names of all interfaces, in order.
        interface_sets: interfaces by the name of their set; ``default``, unless given, holds all.
        parameters: the values of PARAM entries as text, by name.
        only: the queries whose results are delivered; () for every query that no other query reads.
        is_unbounded: whether packets never end, so that a grouping without a temporal term would
            never answer.
        is_repeatable: whether the order of rows must not depend on timing, so that results without
            a temporal column need a hidden one.
        is_interleaved: whether that also holds for the rows of several results together.
        is_resumable: whether a run may be killed and resumed, so that rows that delivery holds
            would be lost.
        window_plan: how windows are computed.
        samples: whether packets are sampled, so that LFTAs need to know what they keep.
        follows_load: whether the rate may change while packets are captured.
        partitions: the number of partitions that rows are divided into; 1 for none.
        partition_set: the set that packets are divided by; None to choose it.
        hosts: the hosts whose interfaces are read; those of the host ``a`` are called ``a.NAME``.
    """

    interfaces: tuple[str, ...]
    interface_sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    is_unbounded: bool = False
    is_repeatable: bool = False
    is_interleaved: bool = False
    is_resumable: bool = False
    window_plan: WindowPlan = WindowPlan.PAIRED
    samples: bool = False
    follows_load: bool = False
    partitions: int = 1
    partition_set: PartitionSet | None = None
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled query set.

    Attributes:
        stages: the logical plan as built, named "plan", then the plan after each rule that changed
            it, under the name of the rule.
        program: what the processes of a run execute.
        shared: the program before its packets are sampled.
    """

    stages: tuple[tuple[str, LogicalPlan], ...]
    program: Program
    shared: Program

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reports on parts of the queries that can do nothing, each once."""
        plan = self.stages[0][1]
        return tuple(dict.fromkeys(w for query in plan.queries for w in query.warnings))

    @property
    def sampling(self) -> SamplingReport:
        """How packets are sampled if they are."""
        from gscope.queries.analysis.sampling.sampled import sampled

        return sampled(self.stages[0][1], self.shared)[1]

    @property
    def moving(self) -> tuple[tuple[MovingSample, ...], dict[str, str]]:
        """The components that follow the load, and why others cannot.

        They are given by the names of their LFTAs.
        """
        from gscope.queries.analysis.sampling.sampled import sampled
        from gscope.queries.plan.sampling.moving_samples import moving_samples
        from gscope.queries.plan.sampling.rated_program import with_row_rates

        return moving_samples(with_row_rates(sampled(self.stages[0][1], self.shared)[0]))


def compile_queries(texts: Sequence[QueryText], context: CompileContext) -> Compiled:
    """Compile query texts together, which may read each other's results.

    Raises:
        GsqlError: a text is wrong; with position, marked line and remedy.
    """
    files = [parse(each.text, each.source) for each in texts]
    plan = analyze(
        files,
        context.interfaces,
        context.interface_sets,
        context.parameters,
        context.only,
        is_unbounded=context.is_unbounded,
        hosts=context.hosts,
    )
    results = context.only or _delivered(plan)
    compiled = _compiled(plan, results, context)
    if context.is_repeatable:
        # The order of one interface's packets holds within a result, not between several.
        is_interleaved = context.is_interleaved and len(results) > 1
        unordered = [
            name
            for name, source in compiled.program.results
            if is_interleaved or isinstance(source, QueryInput)
        ]
        ordered = with_order(plan, unordered)
        if ordered != plan:
            return _compiled(ordered, results, context)
    return compiled


def _compiled(plan: LogicalPlan, results: tuple[str, ...], context: CompileContext) -> Compiled:
    """Return the compiled plan; its columns that describe a sample follow from the schemes found.

    Aggregates that such columns add change which LFTAs are shared, and so the schemes.
    """
    made = _compiled_as_is(plan, results, context)
    if not any(query.sample_columns for query in plan.queries):
        return made
    from gscope.queries.analysis.sampling.intervals import with_sample_columns
    from gscope.queries.analysis.sampling.query_sets import QuerySetSampling

    for _ in range(_MOST_SCHEMES):
        decided = with_sample_columns(plan, QuerySetSampling.of(plan, made.shared))
        if decided == plan:
            return made
        plan = decided
        made = _compiled_as_is(plan, results, context)
    column = next(query.sample_columns[0] for query in plan.queries if query.sample_columns)
    message = f"{column.name} cannot be computed: it changes how its packets are sampled"
    remedy = "choose the sample with SAMPLE BY, or leave the column out"
    error = UnsupportedError(message, position=column.position, remedy=remedy)
    raise error.located(column.text, column.source)


def _compiled_as_is(
    plan: LogicalPlan, results: tuple[str, ...], context: CompileContext
) -> Compiled:
    stages = [("plan", plan), *optimize(plan)]
    program = split(
        stages[-1][1],
        results,
        delivers_in_order=not context.is_resumable,
        windows=context.window_plan,
    )
    shared = with_pre_samples(share(program))
    has_hints = any(query.sampling is not None for query in plan.queries)
    # Hints are checked wherever a query is compiled, so that a deployed one does not fail later.
    made = shared
    if context.samples or has_hints:
        from gscope.queries.analysis.sampling.sampled import sampled

        with_samples = sampled(plan, shared)[0]
        made = with_samples if context.samples else shared
    if context.follows_load:
        from gscope.queries.plan.sampling.rated_program import with_row_rates

        made = with_row_rates(made)
    if context.partitions > 1 and made.needs_spark:
        from gscope.queries.analysis.partitioning.chosen import chosen_set, members_of
        from gscope.queries.plan.partitioning.divided_streams import with_partitioning

        given = context.partition_set or chosen_set(plan, results, context.partitions)
        made = with_partitioning(made, context.partitions, members_of(given))
    return Compiled(tuple(stages), made, shared)


def _delivered(plan: LogicalPlan) -> tuple[str, ...]:
    """Return the queries that no other query reads, and those marked external."""
    read = {name for query in plan.queries for name in scans(query.root)}
    return tuple(q.name for q in plan.queries if q.is_external or q.name not in read)
