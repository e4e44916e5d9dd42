"""What rows that an operator never got mean for its answers (control plane, no tuples).

Lost rows are known by the spans of their temporal columns. An answer is incomplete if any row that
it is made of may be lost. So each operator turns the spans of lost rows at one of its sides into
the epochs whose answers they concern, and these into the spans of the columns of these answers, for
the operators that read them.

::

    aggregation, top, sample   the epochs of the lost rows
    join                       the same; of an interval join, all that have partners among the lost
    window                     all windows that hold a slice of the lost rows
    merge, selection           the lost rows themselves: their epochs are values of the merged
                               column, or of the first temporal column of the output
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gscope.engine.operators.pass_through import PassThroughOperator
from gscope.engine.operators.window import WindowOperator
from gscope.engine.watermarks.bounds import (
    ANYTHING,
    ENDED,
    NO_VALUE,
    NOTHING,
    span_of,
    spans_by_name,
)
from gscope.queries.expressions.expressions import Column, NamedExpression
from gscope.queries.expressions.types import Direction
from gscope.queries.plan.program import MergeNode, RunningNode, TopNode
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_START

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.operators.base import Operator
    from gscope.engine.operators.epochs import EpochOperator
    from gscope.engine.watermarks.bounds import Bound, KnownSpan, Span
    from gscope.engine.watermarks.loss_spans import Spans
    from gscope.queries.expressions.expressions import Expression


def concerned_epochs(operator: Operator, side: int, lost: Mapping[str, Span]) -> Span:
    """Return the first and the last epoch whose answers lost rows of a side may change.

    The epochs of a window are the numbers of its windows. ``NO_VALUE`` if no answer changes.
    """
    match operator:
        case WindowOperator():
            return windows_holding(operator, _at(operator.sides[0].epoch, lost))
        case PassThroughOperator():
            column = _answered_column(operator)
            return ANYTHING if column is None else span_of(column.expression, _of_side(side, lost))
        case _:
            each = operator.sides[side]
            least, greatest = _at(each.epoch, lost)
            return least - each.epoch_range.last, greatest - each.epoch_range.first


def windows_holding(operator: WindowOperator, slices: Span) -> Span:
    """Return the first and the last window that hold one of some slices."""
    least, greatest = slices
    windows = operator.windows
    first = windows.first_open(math.floor(least)) if math.isfinite(least) else least
    last = windows.last_holding(math.ceil(greatest)) if math.isfinite(greatest) else greatest
    return first, last


def concerned_rows(operator: Operator, side: int, lost: Mapping[str, Span], epochs: Span) -> Spans:
    """Return the spans of the temporal columns of the answers that lost rows may change.

    Args:
        operator: the operator.
        side: the side at which the rows were lost.
        lost: the spans of their columns.
        epochs: what ``concerned_epochs`` returns of them.
    """
    match operator:
        case WindowOperator():
            known = _of_windows(operator, epochs)
        case PassThroughOperator():
            known = _of_side(side, lost)
        case _:
            known = _of_epochs(operator, side, lost, epochs)  # type: ignore[arg-type]
    return _output_spans(operator, known)


def answers_of(operator: Operator, first: int | None, last: int | None) -> Spans:
    """Return the spans of the temporal columns of the answers of some epochs.

    Args:
        operator: the operator.
        first: the first epoch, as ``shown_epoch`` returns it.
        last: the last one.
    """
    epochs = (-math.inf if first is None else first, math.inf if last is None else last)
    match operator:
        case WindowOperator():
            return _output_spans(operator, _of_ends(epochs))
        case PassThroughOperator():
            column = _answered_column(operator)
            return {} if column is None else {column.name: epochs}
        case _:
            known = _of_epochs(operator, 0, {}, epochs)  # type: ignore[arg-type]
            return _output_spans(operator, known)


def answered_below(operator: Operator) -> Bound:
    """Return the epoch below which no answer changes any more, as ``concerned_epochs`` counts."""
    match operator:
        case WindowOperator():
            watermark = operator.watermark
            return (
                operator.windows.last_complete(math.floor(watermark)) + 1
                if math.isfinite(watermark)
                else watermark
            )
        case PassThroughOperator():
            column = _answered_column(operator)
            bounds = operator.output_bounds()
            if operator.watermark == ENDED or column is None:
                return operator.watermark
            return bounds.get(column.name, NOTHING)
        case _:
            return operator.watermark


def shown_epoch(operator: Operator, epoch: Bound) -> int | None:
    """Return an epoch as the columns of the answers have it; None if it is unknown."""
    if not math.isfinite(epoch) or epoch < 0:
        return None
    if isinstance(operator, WindowOperator):
        return operator.window_node.edge(WINDOW_END, math.floor(epoch))
    return math.floor(epoch)


def counts_epochs(operator: Operator) -> bool:
    """Return whether the answers are those of epochs; if not, rows are passed on one by one."""
    return not isinstance(operator, PassThroughOperator) and not isinstance(
        operator.node, MergeNode
    )


def is_running(operator: Operator) -> bool:
    """Return whether an answer is made of the epochs before it as well, while a group lives."""
    return isinstance(operator.node, RunningNode)


def _at(epoch: Expression | None, lost: Mapping[str, Span]) -> Span:
    assert epoch is not None
    return span_of(epoch, spans_by_name(lost))


def _output_spans(operator: Operator, known: KnownSpan) -> Spans:
    schema = operator.node.schema
    temporal = (each for each in _outputs(operator) if schema[each.name].ordering.is_temporal)
    spans = {each.name: span_of(each.expression, known) for each in temporal}
    return {name: span for name, span in spans.items() if span != ANYTHING}


def _outputs(operator: Operator) -> tuple[NamedExpression, ...]:
    return operator.outputs  # type: ignore[attr-defined,no-any-return]  # of all operators here


def _answered_column(operator: PassThroughOperator) -> NamedExpression | None:
    """Return the column by which the rows are placed: the first one that increases."""
    schema = operator.node.schema
    return next(
        (
            each
            for each in operator.outputs
            if schema[each.name].ordering.direction is Direction.INCREASING
        ),
        None,
    )


def _of_side(side: int, lost: Mapping[str, Span]) -> KnownSpan:
    """Return the spans of the columns of a row of one side, without any of another."""

    def known(part: Expression) -> Span | None:
        if not isinstance(part, Column):
            return None
        return lost.get(part.name, ANYTHING) if part.input == side else NO_VALUE

    return known


def _of_windows(operator: WindowOperator, windows: Span) -> KnownSpan:
    def edge(name: str, window: Bound) -> Bound:
        if not math.isfinite(window):
            return window
        return operator.window_node.edge(name, math.floor(window))

    def known(part: Expression) -> Span | None:
        if not isinstance(part, Column):
            return None
        if part.name not in (WINDOW_START, WINDOW_END):
            return ANYTHING
        return edge(part.name, windows[0]), edge(part.name, windows[1])

    return known


def _of_ends(ends: Span) -> KnownSpan:
    def known(part: Expression) -> Span | None:
        if not isinstance(part, Column):
            return None
        return ends if part.name == WINDOW_END else ANYTHING

    return known


def _of_epochs(
    operator: EpochOperator, side: int, lost: Mapping[str, Span], epochs: Span
) -> KnownSpan:
    """Return the spans of what the output columns of an epoch operator are computed from."""
    is_merge = isinstance(operator.node, MergeNode)
    # Other rows of the epoch take the place of a row that is missing among the first ones.
    is_own = not isinstance(operator.node, TopNode)

    def known(part: Expression) -> Span | None:
        for number, each in enumerate(operator.sides):
            if part == each.epoch and (number == side or not is_merge):
                return epochs[0] + each.epoch_range.first, epochs[1] + each.epoch_range.last
        if not isinstance(part, Column):
            return None
        if part.input == side and is_own:
            return lost.get(part.name, ANYTHING)
        return NO_VALUE if is_merge else ANYTHING

    return operator.spans_through_keys(known)
