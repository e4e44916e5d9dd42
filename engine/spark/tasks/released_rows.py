"""Conditions that rows must satisfy to be released, as expressions that tasks evaluate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.engine.spark.sql.interval_join import home_of
from gscope.engine.spark.tasks.columns import is_computable
from gscope.engine.watermarks.bounds import ENDED, NOTHING
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.program import JoinNode

if TYPE_CHECKING:
    from gscope.engine.operators.base import Work
    from gscope.engine.watermarks.bounds import Bound
    from gscope.engine.watermarks.release import ReleasedInput
    from gscope.queries.expressions.expressions import Expression

UNKNOWN = Literal(None, GsqlType.NULL)
"""Stands for a condition that tasks cannot test."""


def released_condition(work: Work, taken: ReleasedInput) -> Expression | None:
    """Return the condition that released rows of a side satisfy; None if all are released."""
    if not taken.straddles:
        return None
    epoch = taken.epoch
    if epoch is None or work.low != work.read_below or taken.late_below:
        return UNKNOWN
    return between(epoch, work.low + taken.epoch_range.first, work.high + taken.epoch_range.last)


def released_rows_condition(work: Work, taken: ReleasedInput) -> Expression | None:
    """Return the same where a side reads rows of other queries, of this step and of earlier ones.

    Rows of this step beyond the bound wait for a later one.
    """
    if taken.late or taken.overdue:
        return UNKNOWN
    return released_condition(
        work, replace(taken, straddles=taken.straddles or bool(taken.carries))
    )


def homes(work: Work) -> tuple[Expression | None, Expression | None]:
    """Return ``JoinTask.homes``; None for a side whose rows are all at home."""
    node = work.node
    if not isinstance(node, JoinNode) or node.interval is None or node.kind is not JoinKind.OUTER:
        return None, None
    if (work.low, work.high) == (NOTHING, ENDED):
        return None, None
    left, right = (
        between(epoch, work.low + home_of(node, side), work.high + home_of(node, side))
        for side, epoch in enumerate(node.epochs)
    )
    return left, right


def between(epoch: Expression, low: Bound, high: Bound) -> Expression | None:
    """Return ``low <= epoch < high``.

    None if it always holds, ``UNKNOWN`` if tasks cannot test it.
    """
    if epoch.is_nullable or not is_computable(epoch) or low == ENDED or high == NOTHING:
        return UNKNOWN
    tests = [
        call(test, epoch, Literal(int(bound), epoch.type))
        for test, bound in (("ge", low), ("lt", high))
        if bound not in (NOTHING, ENDED)
    ]
    return call("and", *tests) if len(tests) > 1 else next(iter(tests), None)
