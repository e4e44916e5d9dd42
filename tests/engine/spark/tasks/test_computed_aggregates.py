"""Tasks compute each aggregate of the catalog: without one of them, replays start Java."""

from __future__ import annotations

import pytest

from gscope.engine.spark.tasks.aggregate_task import plain_merge
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import AggregationNode

ARGUMENTS = {"quantile": "len, 0.5", "approx_top_k": "len, 2"}
"""Those of aggregates that take more than a number."""


@pytest.mark.parametrize("name", sorted(AGGREGATES))
@pytest.mark.parametrize("reads_rows", [False, True])
def test_tasks_compute_it(name: str, reads_rows: bool) -> None:
    call = f"{name}({ARGUMENTS.get(name, 'len')}) AS x"
    texts = [f"SELECT tb, srcIP, {call} FROM IP GROUP BY time/60 AS tb, srcIP"]
    if reads_rows:
        texts = [
            "DEFINE { query_name r; } SELECT time, srcIP, len FROM IP",
            f"SELECT tb, srcIP, {call} FROM r GROUP BY time/60 AS tb, srcIP",
        ]
    queries = [QueryText(text, f"q{n}") for n, text in enumerate(texts)]
    program = compile_queries(queries, CompileContext(("a",))).program
    nodes = [node for node in program.nodes if isinstance(node, AggregationNode)]
    assert nodes
    assert all(plain_merge(node, program.input_schema(node.input)) for node in nodes)
