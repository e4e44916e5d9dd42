"""Which programs tasks in the job's own process can answer, as long as steps are small."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.tasks.aggregate_task import plain_merge
from gscope.engine.spark.tasks.join_task import is_plain_join
from gscope.engine.spark.tasks.select_task import is_plain_selection
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    MergeNode,
    QueryInput,
    RunningNode,
    SelectionNode,
    TopNode,
    node_inputs,
)
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.window_node import WindowNode

if TYPE_CHECKING:
    from gscope.queries.plan.program import HftaNode, Program


def needs_sql(program: Program) -> bool:
    """Return whether some operator of ``program`` is certain or likely to need Spark SQL.

    False is not a guarantee: rows that wait for a later step, or arrive late, may still
    have to be read by Spark, which then starts.
    """
    delivered = [source.query for _, source in program.results if isinstance(source, QueryInput)]
    return (
        bool(program.user_files or program.lookups)
        or len(set(delivered)) < len(delivered)
        or not all(_is_plain(program, node) for node in program.nodes)
    )


def _is_plain(program: Program, node: HftaNode) -> bool:
    queries = [each.query for each in node_inputs(node) if isinstance(each, QueryInput)]
    match node:
        case AggregationNode():
            return plain_merge(node, program.input_schema(node.input)) is not None
        case JoinNode():
            return is_plain_join(node)
        case SelectionNode():
            return is_plain_selection(node)
        case RunningNode():
            from gscope.engine.spark.tasks.fold_input import fold_input

            return not queries and fold_input(node) is not None
        case WindowNode(slices=slices) if slices is not None and not queries:
            from gscope.engine.spark.tasks.window_answers import AnswerPlan
            from gscope.engine.spark.tasks.window_task import is_readable

            plan = AnswerPlan.of(node)
            return plan.merge is not None and is_readable(plan)
        case SampleNode():
            return not queries
        case MergeNode() | TopNode():
            return True
        case _:
            return False
