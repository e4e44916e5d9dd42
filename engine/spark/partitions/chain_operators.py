"""What computes a node in partitions: its operator, and the sub and super node of a split one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.partitions.chain_task import (
    ChainJoin,
    ChainMerge,
    ChainSelection,
    ChainSub,
    ChainTop,
    ChainUnion,
)
from gscope.engine.spark.partitions.super_task import FirstOfAll, FoldAgain
from gscope.engine.spark.sql.interval_join import numbered
from gscope.engine.spark.tasks.aggregate_task import is_folded_again, plain_merge
from gscope.engine.spark.tasks.join_task import is_plain_join
from gscope.engine.spark.tasks.released_rows import UNKNOWN, homes
from gscope.engine.spark.tasks.select_task import is_plain_selection
from gscope.engine.spark.tasks.top_task import FirstRows
from gscope.queries.expressions.expressions import Column
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    MergeNode,
    SelectionNode,
    StreamInput,
    TopNode,
)
from gscope.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.engine.operators.base import Work
    from gscope.engine.spark.partitions.chain_task import ChainOperator
    from gscope.engine.spark.tasks.aggregate_task import PartialMerge
    from gscope.engine.spark.tasks.task import Task
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.program import HftaNode, Program


def chain_operator(
    program: Program, node: HftaNode, work: Work | None = None
) -> ChainOperator | None:
    """Return what computes the rows of ``node`` in a partition; None if only SQL can.

    Args:
        program: the program of the node.
        node: the node, with the rates of this step if it has some.
        work: what it does in a step; None to find out whether it can be computed at all.
    """
    match node:
        case AggregationNode() if merge := plain_merge(node, _schema(program, node)):
            return ChainMerge(merge)
        case JoinNode() if is_plain_join(node):
            at_home = (None, None) if work is None else homes(work)
            if UNKNOWN in at_home:
                return None
            return ChainJoin(node if node.interval is None else numbered(node), at_home)
        case SelectionNode() if is_plain_selection(node):
            return ChainSelection(node)
        case MergeNode():
            columns = (Column(c.name, c.type, c.is_nullable) for c in node.schema.columns)
            return ChainUnion(node, tuple(columns))
        case TopNode() if top := FirstRows.kept_by(node.order, node.schema):
            return ChainTop(node.columns, top)
    return None


def sub_operator(operator: ChainOperator, *, has_whole_groups: bool) -> ChainOperator | None:
    """Return the sub node of a split node, given what would compute the whole; None if none can."""
    if has_whole_groups or isinstance(operator, ChainTop):
        return operator
    if isinstance(operator, ChainMerge) and is_folded_again(operator.merge):
        return ChainSub(operator.merge)
    return None


@dataclass(frozen=True, slots=True)
class SuperNode:
    """What merges the rows of the sub nodes of a split node.

    Attributes:
        work: the split node's.
        folder: the folder of the sub nodes' rows.
        merge: the aggregation whose partial groups these are; None if they are rows of which only
            the first are kept.
        top: the first rows; None without LIMIT.
    """

    work: Work
    folder: Path
    merge: PartialMerge | None
    top: FirstRows | None

    def task(self, files: tuple[str, ...]) -> Task:
        """Return the task that reads the sub nodes' files."""
        if self.merge is not None:
            return FoldAgain(self.merge, files)
        assert self.top is not None
        return FirstOfAll(self.top, files)


def super_node(work: Work, sub: ChainOperator, folder: Path) -> SuperNode:
    """Return the super node of a split node, given its sub node and the folder of its rows."""
    if isinstance(sub, ChainSub):
        return SuperNode(work, folder, sub.merge, None)
    top = sub.merge.top if isinstance(sub, ChainMerge) else None
    return SuperNode(work, folder, None, sub.top if isinstance(sub, ChainTop) else top)


def _schema(program: Program, node: AggregationNode) -> Schema:
    if isinstance(node.input, StreamInput):
        return program.lfta(node.input.lfta).stream_schema
    return program.schema(node.input.query)
