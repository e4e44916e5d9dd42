"""From query texts to a program, with every stage kept for ``explain``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gscope.queries.analysis.analyze import analyze
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.hidden_order import with_order
from gscope.queries.plan.program import QueryInput
from gscope.queries.plan.rules.optimize import optimize
from gscope.queries.plan.split.share import share
from gscope.queries.plan.split.split import split
from gscope.queries.plan.trees import scans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.plan.logical import LogicalPlan
    from gscope.queries.plan.program import Program


@dataclass(frozen=True, slots=True)
class QueryText:
    """A text with queries, and what it is called in messages (a file name, ``-e``)."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a query set is compiled against.

    Attributes:
        interfaces: every interface by name, in order.
        interface_sets: named sets of them; the set ``default`` is all.
        parameters: values for PARAM entries, as given on the command line.
        only: deliver these queries and no others; () for those that nobody reads.
        is_unbounded: whether packets never end, so that a grouping without a temporal term would never answer.
        is_repeatable: whether the order of rows must not depend on timing, so that answers without
            a temporal column need a hidden one.
        is_interleaved: whether that is true of the rows of several results together.
    """

    interfaces: tuple[str, ...]
    interface_sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    is_unbounded: bool = False
    is_repeatable: bool = False
    is_interleaved: bool = False


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled query set.

    Attributes:
        stages: the logical plan as built ("plan"), then after each rule that changed it.
    """

    stages: tuple[tuple[str, LogicalPlan], ...]
    program: Program


def compile_queries(texts: Sequence[QueryText], surroundings: Surroundings) -> Compiled:
    """Compile query texts together; they may read each other's results.

    Raises:
        GsqlError: a text is wrong; with position, marked line and remedy.
    """
    files = [parse(each.text, each.source) for each in texts]
    plan = analyze(
        files,
        surroundings.interfaces,
        surroundings.interface_sets,
        surroundings.parameters,
        surroundings.only,
        is_unbounded=surroundings.is_unbounded,
    )
    results = surroundings.only or _delivered(plan)
    compiled = _compiled(plan, results)
    if surroundings.is_repeatable:
        # Packets of one interface have an order of their own, which says nothing of other results.
        is_interleaved = surroundings.is_interleaved and len(results) > 1
        unordered = [
            name
            for name, source in compiled.program.results
            if is_interleaved or isinstance(source, QueryInput)
        ]
        ordered = with_order(plan, unordered)
        if ordered != plan:
            return _compiled(ordered, results)
    return compiled


def _compiled(plan: LogicalPlan, results: tuple[str, ...]) -> Compiled:
    stages = [("plan", plan), *optimize(plan)]
    return Compiled(tuple(stages), share(split(stages[-1][1], results)))


def _delivered(plan: LogicalPlan) -> tuple[str, ...]:
    """The queries that nobody reads, and those marked external."""
    read = {name for query in plan.queries for name in scans(query.root)}
    return tuple(q.name for q in plan.queries if q.is_external or q.name not in read)
