"""The bound of the state of groups that live across epochs: each of them closes in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.running import DISTINCT_VALUES, RUNNING
from gscope.queries.plan.idle_groups import idle_groups_close
from gscope.queries.plan.show_expressions import show

if TYPE_CHECKING:
    from gscope.queries.plan.program import RunningNode


def running_state_bound(node: RunningNode) -> str:
    """Return what bounds the state of ``node``, or the warning that nothing does."""
    parts = [f"one row of state for each live group; it closes when {show(node.closing)}"]
    if any(a.function == DISTINCT_VALUES for a in node.aggregates):
        parts.append("each row holds the set of values that its group has seen")
    parts.extend(
        f"and {aggregate.constants[0]!r} epochs of {aggregate.name}"
        for aggregate in node.running
        if RUNNING[aggregate.function].moves_when_idle
    )
    if len(node.keys) > 1 and not idle_groups_close(node):
        parts.append(
            "WARNING: nothing bounds the state, since a group without tuples never closes: "
            "add OR count(*) = 0 to CLOSING_WHEN"
        )
    return "; ".join(parts)
