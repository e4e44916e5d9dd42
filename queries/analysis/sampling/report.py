"""How the schemes of a query set were decided, as explain reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.analysis.lineage.compatible import ALL
from gscope.queries.analysis.sampling.choose import sets_by_stream
from gscope.queries.analysis.sampling.hints import hinted
from gscope.queries.analysis.sampling.program_trees import lfta_of
from gscope.queries.analysis.sampling.standings import Judge, Rows, Scheme
from gscope.queries.plan.logical import Join, Merge
from gscope.queries.plan.program_sampling import SamplingMethod, Standing
from gscope.queries.plan.sampling.report import (
    ComponentReport,
    LeafReport,
    QueryReport,
    UnsampledReport,
)
from gscope.queries.plan.show_expressions import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.analysis.lineage.forest import TreeNode
    from gscope.queries.analysis.lineage.terms import Terms
    from gscope.queries.analysis.sampling.query_sets import PlacedTree, QuerySetSampling

Judged = tuple["PlacedTree", Judge]
"""A result, and what the schemes make of its nodes."""


def component_report(
    found: QuerySetSampling,
    judged: Sequence[Judged],
    streams: Sequence[str],
    lftas: Mapping[str, str],
) -> ComponentReport:
    """Return the report of results that share a rate.

    Args:
        found: the schemes of the query set.
        judged: the results.
        streams: their streams.
        lftas: the LFTA that makes each stream.
    """
    by_stream = sets_by_stream(found.assignment)
    leaves = tuple(
        LeafReport(
            lfta=lftas[stream],
            method=found.assignment.methods[stream],
            terms=tuple(term.over(stream) for term in by_stream.get(stream, ())),
            reason=_reason(found, judged, stream),
        )
        for stream in streams
    )
    queries: dict[str, QueryReport] = {}
    for placed, judge in judged:
        assert placed.tree is not None
        for each in placed.tree.walk():
            if each.is_root:
                outcome = judge.outcomes[each]
                columns = tuple(outcome.columns.items())
                queries[each.query.name] = QueryReport(
                    query=each.query.name,
                    is_whole=outcome.rows is Rows.SAMPLE
                    and all(standing is Standing.WHOLE for _, standing in columns),
                    reason=_reason_of_rows(judge, each),
                    compatible=_compatible(found, each),
                    columns=columns,
                    of_sample=tuple(
                        (column.name, column.basis)
                        for column in each.query.sample_columns
                        if column.basis
                    ),
                )
    min_rate = max(placed.wishes.min_rate for placed, _ in judged)
    return ComponentReport(leaves, tuple(queries.values()), min_rate)


def unsampled_report(placed: PlacedTree) -> UnsampledReport:
    """Return why a result is not sampled."""
    lftas = tuple(dict.fromkeys(map(lfta_of, placed.streams)))
    return UnsampledReport(placed.result, lftas, placed.refusal)


def _compatible(found: QuerySetSampling, tree: TreeNode) -> tuple[str, ...]:
    terms = found.sets.of(tree)
    if terms is ALL:
        return ("every field of a packet",)
    return _shown(terms)


def _shown(terms: Terms) -> tuple[str, ...]:
    return tuple(" = ".join(dict.fromkeys(show(t.over(s)) for s in t.streams)) for t in terms)


def _reason_of_rows(judge: Judge, tree: TreeNode) -> str:
    """Return which node and which rule decided what the rows of a query are."""
    if judge.outcomes[tree].is_whole:
        return (
            f"all packets of a row agree in {', '.join(_shown(judge.scheme.terms(tree.streams)))}"
        )
    for node in tree.walk():
        if judge.outcomes[node].rows is not Rows.SAMPLE:
            terms = _shown(judge.scheme.terms(node.streams))
            kept = f"can differ in {', '.join(terms)}" if terms else "are kept one by one"
            return f"packets of a group of {node.query.name} {kept}"
    return "each packet is kept or left out on its own"


def _reason(found: QuerySetSampling, judged: Sequence[Judged], stream: str) -> str:
    """Return which query and which rule decided how a stream is sampled."""
    trees = [placed for placed, _ in judged if stream in placed.streams]
    for placed in trees:
        assert placed.tree is not None
        for node, hint in hinted(placed.tree):
            if stream in node.streams and hint.terms:
                return f"SAMPLE BY of {node.query.name}"
            if stream in node.streams and hint.method is SamplingMethod.TUPLES:
                return f"sampling 'tuples' of {node.query.name}"
    if found.assignment.methods[stream] is SamplingMethod.TUPLES:
        return "no query groups or joins its packets by terms that an LFTA can hash"
    whole = [
        (placed, node)
        for placed, judge in judged
        if placed in trees and placed.tree is not None
        for node in placed.tree.walk()
        if stream in node.streams and judge.outcomes[node].is_whole
    ]
    own = {term.of((stream,)) for term in sets_by_stream(found.assignment)[stream]}
    for placed, node in whole:
        terms = found.sets.of(node)
        if terms is not ALL and {term.of((stream,)) for term in terms} == own:
            what = "pairs" if isinstance(node.node, Join) else "groups"
            return f"so that {what} of {node.query.name} are whole: {_need(found, placed, stream)}"
    united = next((n for _, n in whole if isinstance(n.node, Merge) and len(n.streams) > 1), None)
    if united is not None and found.sets.of(united) is ALL:
        return f"so that all inputs of {united.query.name} are sampled alike"
    if any(found.sets.of(node) is not ALL for _, node in whole):
        names = ", ".join(dict.fromkeys(placed.result for placed, _ in whole))
        return f"the terms that {names} have in common"
    return "because another LFTA of the same packets keeps these groups"


def _need(found: QuerySetSampling, placed: PlacedTree, stream: str) -> str:
    """Return what a sample by tuples would break, for the reader of an explanation."""
    assert placed.tree is not None
    scheme = Scheme(dict.fromkeys(placed.tree.streams, SamplingMethod.TUPLES), ())
    judge = Judge(found.sets, scheme)
    judge.judge(placed.tree)
    broken = [breach for breach in judge.breaches if stream in breach.tree.streams]
    if not broken:
        return "packets chosen one by one would do, but give estimates"
    return f"packets chosen one by one would break {broken[0].text}"
