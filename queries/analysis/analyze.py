"""Syntax of query files → logical plan, with names resolved and types and orderings inferred."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.errors import GsqlError, ResolveError, TemporalError
from gscope.queries.analysis.joins.merge import build_merge
from gscope.queries.analysis.names.aliases import without_aliases
from gscope.queries.analysis.names.query_set import (
    QueryEntry,
    QuerySet,
    ResolvedInput,
    ResolvedPacketInput,
    ResolvedQueryInput,
    ResolvedWatchlistInput,
)
from gscope.queries.analysis.names.scope import Source, open_packets, open_query
from gscope.queries.analysis.names.watchlists import check_streams, open_watchlist
from gscope.queries.analysis.sample_by import terms_of_union
from gscope.queries.analysis.sampling.written_hint import sampling_hint
from gscope.queries.analysis.select import build_select
from gscope.queries.analysis.typing.column_facts import facts_of
from gscope.queries.analysis.typing.parameters import Substitutes
from gscope.queries.analysis.warnings import warnings_on
from gscope.queries.analysis.windows.window_input import window_below
from gscope.queries.did_you_mean import did_you_mean
from gscope.queries.expressions.schema import Schema
from gscope.queries.gsql import nodes
from gscope.queries.gsql.node import walk
from gscope.queries.gsql.printer import print_body
from gscope.queries.plan.logical import LogicalPlan, LogicalQuery
from gscope.queries.plan.row_order import is_hidden, visible
from gscope.queries.plan.sampling_operator import SampleGroupBy
from gscope.queries.plan.trees import nodes_of
from gscope.queries.plan.windows.columns import WINDOW_TIME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gscope.queries.analysis.typing.column_facts import Facts

_SAMPLER_ENTRIES = frozenset({"sampler_seed", "max_groups"})
"""Entries of DEFINE that only a sampling operator reads."""


def analyze(
    files: Sequence[nodes.File],
    interfaces: tuple[str, ...],
    interface_sets: Mapping[str, tuple[str, ...]],
    parameters: Mapping[str, str],
    only: Sequence[str] = (),
    *,
    is_unbounded: bool = False,
    hosts: tuple[str, ...] = (),
) -> LogicalPlan:
    """Return the logical plan of all queries of ``files`` together.

    Args:
        files: parsed query files; their queries may read each other's results.
        interfaces: the names of all interfaces; () if they are unknown, then any name is accepted.
        interface_sets: interfaces by the name of their set; ``default``, unless given, holds all.
        parameters: values of ``$name`` as text.
        only: the queries to plan, besides those that they read; () for all.
        is_unbounded: whether the input never ends, so that every grouping needs a temporal term.
        hosts: the hosts whose interfaces are read, see ``QuerySet``.

    Raises:
        GsqlError: a query is wrong or unsupported; with position and remedy.
    """
    queries = QuerySet(interfaces, interface_sets, hosts)
    queries.add_files(files)
    own = [name for name in queries.own if name not in queries.watchlists]
    _check_wanted(own, only, files)
    _check_parameters(queries, parameters)
    schemas: dict[str, Schema] = {}
    facts: dict[str, Facts] = {}
    plans: list[LogicalQuery] = []
    roots = only or own
    entries = queries.in_order(roots)
    slid_over = {name for entry in entries for name in _slid_over(entry)}
    for entry in entries:
        try:
            sources = [
                _open(one, written, schemas, facts, plans)
                for one, written in zip(entry.inputs, entry.body.inputs, strict=True)
            ]
            if is_unbounded:
                _check_limited_inputs(entry, plans)
            has_time = entry.name in slid_over
            plan = _plan(entry, sources, parameters, is_unbounded=is_unbounded, has_time=has_time)
        except GsqlError as error:
            raise error.located(entry.file.text, entry.file.source) from None
        schemas[entry.name] = visible(plan.schema)
        facts[entry.name] = facts_of(plan.root, facts)
        plans.append(plan)
    plans = _with_idle_entries(entries, plans)
    saved = tuple((name, file) for name, file in queries.saved_packets.items() if name in schemas)
    return LogicalPlan(interfaces, tuple(plans), saved)


def _with_idle_entries(
    entries: Sequence[QueryEntry], plans: Sequence[LogicalQuery]
) -> list[LogicalQuery]:
    """Return the plans, with warnings on entries of DEFINE.

    There is one on each entry that only sampling operators read.
    """
    sampled = {
        id(entry.owner)
        for entry, plan in zip(entries, plans, strict=True)
        if any(isinstance(node, SampleGroupBy) for node in nodes_of(plan.root))
    }
    # Subqueries come before the query that has the DEFINE.
    last = {id(entry.owner): number for number, entry in enumerate(entries)}
    return [
        replace(plan, warnings=(*plan.warnings, *_idle_entries(entry)))
        if last[id(entry.owner)] == number and id(entry.owner) not in sampled
        else plan
        for number, (entry, plan) in enumerate(zip(entries, plans, strict=True))
    ]


def _idle_entries(entry: QueryEntry) -> Iterator[str]:
    used = {node.name for node in walk(entry.owner) if isinstance(node, nodes.Definition)}
    for each in entry.owner.define:
        if each.name in _SAMPLER_ENTRIES and each.name not in used:
            message = f"{each.name} has no effect: the query has no sampling operator"
            remedy = "leave it out, or group with CLEANING_WHEN … CLEANING_BY …"
            error = ResolveError(message, position=each.position, remedy=remedy)
            yield error.located(entry.file.text, entry.file.source).report()


def _plan(
    entry: QueryEntry,
    sources: Sequence[Source],
    parameters: Mapping[str, str],
    *,
    is_unbounded: bool,
    has_time: bool,
) -> LogicalQuery:
    check_streams(entry.body.inputs, sources)
    substitutes = Substitutes(entry.owner, parameters)
    if isinstance(entry.body, nodes.MergeQuery):
        root = build_merge(entry.body, sources, substitutes, is_unbounded=is_unbounded)
        terms = terms_of_union(entry.body, substitutes, root)
        hint = sampling_hint(entry.owner, entry.body, terms, entry.file)
        return LogicalQuery(
            entry.name, root, root.schema, entry.is_external, entry.text, sampling=hint
        )
    body = without_aliases(entry.body, sources)
    rows = build_select(body, sources, substitutes, is_unbounded=is_unbounded, has_time=has_time)
    node = rows.node
    found = warnings_on(body, entry.body, sources[0], node) if len(sources) == 1 else ()
    warnings = tuple(one.located(entry.file.text, entry.file.source).report() for one in found)
    return LogicalQuery(
        entry.name,
        node,
        node.schema,
        entry.is_external,
        entry.text,
        meaning="" if body == entry.body else print_body(body),
        order=rows.order,
        warnings=warnings,
        sampling=sampling_hint(entry.owner, body, rows.sample_by, entry.file),
        sample_columns=tuple(
            replace(each, source=entry.file.source, text=entry.file.text)
            for each in rows.sample_columns
        ),
    )


def _check_limited_inputs(entry: QueryEntry, plans: Sequence[LogicalQuery]) -> None:
    """Refuse to read the first rows of a stream that never ends.

    Raises:
        TemporalError: an input is a selection with a LIMIT.
    """
    limited = {
        query.name
        for query in plans
        if query.order is not None and query.order.is_selection and query.order.limit is not None
    }
    for one, written in zip(entry.inputs, entry.body.inputs, strict=True):
        if isinstance(one, ResolvedQueryInput) and one.query in limited:
            message = (
                "the first rows of a selection are read when the input has ended, and it never ends"
            )
            remedy = "bound the run with --duration or -c, or leave LIMIT out of the inner query"
            raise TemporalError(message, position=written.position, remedy=remedy)


def _slid_over(entry: QueryEntry) -> list[str]:
    """Return the queries over whose results windows of ``entry`` slide."""
    return [
        one.query
        for one, written in zip(entry.inputs, entry.body.inputs, strict=True)
        if isinstance(one, ResolvedQueryInput) and written.window is not None
    ]


def _open(
    one: ResolvedInput,
    written: nodes.Input,
    schemas: Mapping[str, Schema],
    facts: Mapping[str, Facts],
    plans: Sequence[LogicalQuery],
) -> Source:
    if isinstance(one, ResolvedPacketInput):
        return open_packets(one.protocol, one.interfaces, one.qualifiers)
    if isinstance(one, ResolvedWatchlistInput):
        return open_watchlist(one.watchlist, one.qualifiers)
    if written.window is not None:
        query = next(query for query in plans if query.name == one.query)
        if WINDOW_TIME in query.schema:
            kept = Schema(
                tuple(
                    column
                    for column in query.schema.columns
                    if column.name == WINDOW_TIME or not is_hidden(column.name)
                )
            )
            window = window_below(query.root)
            return open_query(one.query, kept, one.qualifiers, facts[one.query], window)
    return open_query(one.query, schemas[one.query], one.qualifiers, facts[one.query])


def _check_wanted(own: Sequence[str], only: Sequence[str], files: Sequence[nodes.File]) -> None:
    if not own:
        message = "the text contains no query"
        sources = ", ".join(file.source for file in files)
        raise ResolveError(message, remedy="write SELECT … FROM …", source=sources)
    for name in only:
        if name not in own:
            message = f"unknown query {name}"
            raise ResolveError(message, remedy=did_you_mean(name, own, "available queries"))


def _check_parameters(queries: QuerySet, parameters: Mapping[str, str]) -> None:
    declared = [p.name for entry in queries.entries.values() for p in entry.owner.params]
    for name in parameters:
        if name not in declared:
            message = f"no query declares a parameter {name}"
            raise ResolveError(message, remedy=did_you_mean(name, declared, "available parameters"))
