"""A program with what each LFTA keeps of its packets, and the report of how that was decided."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.analysis.sampling.choose import sets_by_stream
from gscope.queries.analysis.sampling.program_trees import (
    Instances,
    groupings_of,
    with_sampling,
)
from gscope.queries.analysis.sampling.query_sets import PlacedTree, QuerySetSampling
from gscope.queries.analysis.sampling.report import component_report, unsampled_report
from gscope.queries.plan.logical import GroupBy, RunningGroupBy, WindowGroupBy
from gscope.queries.plan.program_sampling import (
    LeafSampling,
    NodeSampling,
    SamplingComponent,
    SamplingMethod,
)
from gscope.queries.plan.sampling.report import SamplingReport

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.analysis.sampling.standings import Judge, Outcome
    from gscope.queries.plan.logical import LogicalPlan
    from gscope.queries.plan.program import Program


def sampled(plan: LogicalPlan, program: Program) -> tuple[Program, SamplingReport]:
    """Return ``program`` sampled, and the report.

    Args:
        plan: the queries as the analysis of their text leaves them.
        program: the program that they were compiled to, in which results share all that is equal.

    Raises:
        GsqlError: a hint of a query is incompatible with it or with those that read it.
    """
    found = QuerySetSampling.of(plan, program)
    analysed = {each.result: each.streams for each in found.placed if each.choice is not None}
    if len(analysed) < len(found.placed):
        # A tree of too many leaves reads LFTAs that others must not sample.
        reasons = tuple(r for each in found.placed if each.choice is None for r in each.refusal)
        unsampled = (
            replace(unsampled_report(each), reasons=each.refusal or reasons)
            for each in found.placed
        )
        return program, SamplingReport((), tuple(unsampled))
    changed, lftas = Instances.of(program, analysed)
    by_stream = sets_by_stream(found.assignment)
    sampling = {
        lftas[stream]: LeafSampling(
            method,
            tuple(term.over(stream) for term in by_stream.get(stream, ())),
        )
        for stream, method in found.assignment.methods.items()
        if method is not SamplingMethod.NONE
    }
    changed = with_sampling(changed, sampling)
    components = []
    reports = []
    for trees in _components(found):
        judged = [(tree, found.judge(tree)) for tree in trees]
        streams = tuple(dict.fromkeys(s for tree in trees for s in tree.streams))
        components.append(
            SamplingComponent(
                lftas=tuple(lftas[stream] for stream in streams),
                nodes=_nodes(changed, judged),
                min_rate=max((tree.wishes.min_rate for tree in trees), default=0.0),
            )
        )
        reports.append(component_report(found, judged, streams, lftas))
    refused = tuple(unsampled_report(each) for each in found.placed if each.refusal)
    return (
        replace(changed, sampling=tuple(components)),
        SamplingReport(tuple(reports), refused),
    )


def _components(found: QuerySetSampling) -> list[list[PlacedTree]]:
    """Return the sampled results, those together that are connected by streams."""
    groups: list[tuple[set[str], list[PlacedTree]]] = []
    for tree in found.placed:
        if tree.refusal:
            continue
        streams, trees = set(tree.streams), [tree]
        for group in [each for each in groups if each[0] & streams]:
            groups.remove(group)
            streams |= group[0]
            trees = [*group[1], *trees]
        groups.append((streams, trees))
    return [trees for _, trees in groups]


def _nodes(
    program: Program, judged: Sequence[tuple[PlacedTree, Judge]]
) -> tuple[NodeSampling, ...]:
    """Return what sampling makes of the nodes of some results, in the order of the program."""
    found: dict[str, NodeSampling] = {}
    for placed, judge in judged:
        assert placed.tree is not None
        source = dict(program.results)[placed.result]
        groups = [
            each
            for each in placed.tree.walk()
            if isinstance(each.node, GroupBy | RunningGroupBy | WindowGroupBy)
        ]
        names = groupings_of(program, source)
        outputs = _outputs(placed, judge)
        for name, group in zip(names, groups, strict=True):
            own = judge.outcomes[group]
            above = outputs.get(group.query.name, own)
            columns = {c: s for c, s in above.columns.items() if c in program.schema(name)}
            found[name] = NodeSampling(name, own.is_exact, own.scaled, tuple(columns.items()))
        for name, outcome in outputs.items():
            if name not in found and any(node.query == name for node in program.nodes):
                found[name] = NodeSampling(
                    name, outcome.is_exact, (), tuple(outcome.columns.items())
                )
    return tuple(found[node.query] for node in program.nodes if node.query in found)


def _outputs(placed: PlacedTree, judge: Judge) -> Mapping[str, Outcome]:
    """Return what sampling makes of each query of a tree."""
    assert placed.tree is not None
    return {each.query.name: judge.outcomes[each] for each in placed.tree.walk() if each.is_root}
