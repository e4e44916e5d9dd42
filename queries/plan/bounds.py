"""What bounds the state of each part of a program: the heart of ``explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    MergeNode,
    RunningNode,
    SelectionNode,
    WatchlistJoinNode,
)
from gscope.queries.plan.running_bound import running_bound
from gscope.queries.plan.show import show

if TYPE_CHECKING:
    from gscope.queries.plan.program import HftaNode, Lfta


def lfta_bound(lfta: Lfta) -> str:
    """What bounds the memory of an LFTA, one sentence."""
    if not lfta.is_aggregation:
        return "no state: each tuple leaves as it comes"
    epoch = next(key for key in lfta.keys if key.name == lfta.epoch)
    return (
        f"a group table of fixed size; a group leaves when it is evicted or its epoch "
        f"{epoch.name} = {show(epoch.expression)} has closed"
    )


def node_bound(node: HftaNode) -> str:
    """What bounds the rows an HFTA node waits for, one sentence."""
    match node:
        case SelectionNode():
            return "no state: each row leaves as it comes"
        case AggregationNode():
            epoch = next(key for key in node.keys if key.name == node.epoch)
            return (
                f"rows of open epochs wait in the log, none in memory; an epoch closes when the "
                f"watermark of {show(epoch.expression)} passes it"
            )
        case RunningNode():
            return running_bound(node)
        case WatchlistJoinNode():
            return (
                f"no state but the table {node.watchlist.name}, which is as large as its file; "
                f"each row leaves as it comes"
            )
        case JoinNode():
            return (
                f"rows of open epochs of either side wait in the log, none in memory; an epoch closes when "
                f"the watermarks of {show(node.epochs[0])} on the left and {show(node.epochs[1])} on the "
                f"right have both passed it; heartbeats move them also when a side is silent"
            )
        case MergeNode():
            return (
                f"rows wait in the log until the slowest input's punctuation of {node.on[0]} "
                f"passes them; heartbeats move it also when an input is silent"
            )
        case _:
            assert_never(node)
