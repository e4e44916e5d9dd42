"""The rewrite rules in their order, and the runner that checks and names each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.plan.rules.collapse_projections import collapse_projections
from gscope.queries.plan.rules.fold_constants import fold_constants
from gscope.queries.plan.rules.inline_selections import inline_selections
from gscope.queries.plan.rules.prune_columns import prune_columns
from gscope.queries.plan.rules.push_filters import push_filters
from gscope.queries.plan.rules.read_payloads_below_joins import read_payloads_below_joins

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.plan.logical import LogicalPlan

RULES: tuple[Callable[[LogicalPlan], LogicalPlan], ...] = (
    inline_selections,  # first: it creates the filters and projections that the others move
    push_filters,  # leaves no projection between a filter and what it filters
    collapse_projections,  # then everything above a leaf is in terms of the leaf
    read_payloads_below_joins,  # once payloads are those of packets
    prune_columns,  # once the place of each computation is settled
    fold_constants,  # last: substitution creates new constants
)


def optimize(plan: LogicalPlan) -> list[tuple[str, LogicalPlan]]:
    """Return the plan after each rule that changed it, under the rule's name, in order.

    Raises:
        AssertionError: a rule changed the schema of a query, a defect of that rule.
    """
    stages: list[tuple[str, LogicalPlan]] = []
    for rule in RULES:
        after = rule(plan)
        for old, new in zip(plan.queries, after.queries, strict=True):
            assert old.schema == new.schema, f"{rule.__name__} changed the schema of {old.name}"
        if after != plan:
            stages.append((rule.__name__, after))
        plan = after
    return stages
