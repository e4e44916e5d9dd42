"""What bounds the state of each part of a program: the most important lines of ``explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.explain.running_state_bounds import running_state_bound
from gscope.queries.plan.explain.show_plans import show_extent
from gscope.queries.plan.explain.show_sampling_operator import sample_state_bound
from gscope.queries.plan.explain.show_windows import window_state_bound
from gscope.queries.plan.logical import Interval
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    MergeNode,
    RunningNode,
    SelectionNode,
    TopNode,
    WatchlistJoinNode,
)
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.show_expressions import show, show_of_sides
from gscope.queries.plan.whole_input import is_whole_input, unites_whole_inputs
from gscope.queries.plan.window_node import WindowNode

if TYPE_CHECKING:
    from gscope.queries.expressions.types import GsqlType
    from gscope.queries.plan.program import HftaNode, Lfta
    from gscope.queries.plan.row_order import Order

WHOLE_INPUT_BOUND = (
    "the input is one epoch: its rows wait in the log, none in memory, and are answered once, when"
    " the input has ended; the disk bounds them (--log). Refused live, unless --duration or -c"
    " bounds the run"
)


def lfta_state_bound(lfta: Lfta) -> str:
    """Return what bounds the memory of an LFTA, in one sentence."""
    if lfta.pre_sample is not None:
        return "a table of fixed size; a supergroup for which it has no room loses its pre-sample"
    if not lfta.is_aggregation:
        return "no state: each tuple is emitted immediately"
    epoch = next(key for key in lfta.keys if key.name == lfta.epoch)
    if is_whole_input(epoch.expression):
        return "a group table of fixed size; a group leaves when it is evicted or the input ends"
    return (
        f"a group table of fixed size; a group leaves when it is evicted or its epoch "
        f"{epoch.name} = {show(epoch.expression)} has closed"
    )


def node_state_bound(node: HftaNode) -> str:
    """Return what bounds the rows that an HFTA node waits for, in one sentence."""
    match node:
        case SelectionNode():
            return "no state: each row is emitted immediately"
        case AggregationNode():
            epoch = next(key for key in node.keys if key.name == node.epoch)
            if is_whole_input(epoch.expression):
                return WHOLE_INPUT_BOUND
            return (
                f"rows of open epochs wait in the log, none in memory; an epoch closes when the "
                f"watermark of {show(epoch.expression)} passes it"
            )
        case RunningNode():
            return running_state_bound(node)
        case SampleNode():
            return sample_state_bound(node)
        case WindowNode():
            return window_state_bound(node)
        case WatchlistJoinNode():
            return (
                f"no state except the table {node.watchlist.name}, which is as large as its file; "
                "each row is emitted immediately"
            )
        case JoinNode(interval=Interval() as interval):
            return _interval_bound(node, interval)
        case JoinNode():
            return (
                "rows of open epochs of either side wait in the log, none in memory; an epoch "
                f"closes when the watermarks of {show(node.epochs[0])} on the left and "
                f"{show(node.epochs[1])} on the right have both passed it; heartbeats advance them "
                "even when a side is silent"
            )
        case TopNode() if node.order.epoch is None:
            return WHOLE_INPUT_BOUND
        case TopNode():
            return (
                f"rows of open epochs wait on disk, none in memory; an epoch closes when the "
                f"watermark of {node.order.epoch} passes it"
            )
        case MergeNode() if unites_whole_inputs(node):
            return WHOLE_INPUT_BOUND
        case MergeNode():
            return (
                f"rows wait in the log until the slowest input's punctuation of {node.on[0]} "
                f"passes them; heartbeats advance it even when an input is silent"
            )
        case _:
            assert_never(node)


def delivery_bound(order: Order) -> str:
    """Return what delivery does with the rows of a selection in ``order``; "" for nothing.

    The rows of groups arrive with those that LIMIT keeps, in epochs.
    """
    if order.is_head:
        return f"complete after {order.limit} rows"
    if not order.is_selection:
        return ""
    rows = "all rows" if order.limit is None else f"the first {order.limit} rows"
    return f"{rows} wait in memory and are delivered when the input has ended"


def _interval_bound(node: JoinNode, interval: Interval) -> str:
    """Return what bounds the rows that an interval join waits for."""
    left, right = (show_of_sides(epoch) for epoch in node.epochs)
    kind = node.epochs[0].type
    text = (
        f"rows wait in the log, none in memory: one of the left until the watermark of {right} "
        f"passes {_shifted(left, interval.most, kind)}, one of the right until that of {left} "
        f"passes {_shifted(right, -interval.least, kind)}"
    )
    if node.kind is JoinKind.OUTER:
        text += (
            f", and up to {show_extent(interval.width, kind)} longer to find those without a match"
        )
    return f"{text}; heartbeats advance both watermarks even when a side is silent"


def _shifted(expression: str, extent: int, kind: GsqlType) -> str:
    """Return an expression plus a length, as text."""
    sign = "-" if extent < 0 else "+"
    return f"{expression} {sign} {show_extent(abs(extent), kind)}" if extent else expression
