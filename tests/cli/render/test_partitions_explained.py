"""``gscope explain``: what divides rows into partitions, and packets among threads."""

from __future__ import annotations

import pytest

from gscope.cli.render.explain import as_text, explain_compiled
from gscope.engine.spark.partitions.chain_operators import chain_operator
from gscope.queries.analysis.partitioning.given import given_set
from gscope.queries.compile import CompileContext, QueryText, compile_queries

FLOWS = "SELECT tb, srcIP, destIP, count(*) FROM TCP GROUP BY time/60 as tb, srcIP, destIP"
BY_FLOW = "by flow: a hash of addresses and ports, alike for both directions"


def explained(given: str | None, partitions: int = 64) -> list[str]:
    chosen = None if given is None else given_set(given, "set")
    context = CompileContext(("a",), partitions=partitions, partition_set=chosen)
    compiled = compile_queries([QueryText(FLOWS, "q")], context)
    return [line.strip() for line in as_text(explain_compiled(compiled))]


@pytest.mark.parametrize(
    ("given", "fanout", "rows"),
    [
        (None, "by (srcIP, destIP), on Ethernet; on other links by flow", "(srcIP, destIP), as"),
        ("{srcIP, destIP}", "by ({srcIP, destIP}), on", "({srcIP, destIP}), as packets are"),
        (
            "srcIP, srcMAC",
            f"{BY_FLOW}; the kernel cannot divide packets by (srcMAC, srcIP)",
            "(srcIP, destIP), not as packets are",
        ),
    ],
)
def test_explain_shows_what_divides_packets_and_rows(
    given: str | None, fanout: str, rows: str
) -> None:
    lines = explained(given)
    title = "Fanout (live, with --fanout: how the kernel divides packets among threads)"
    assert lines[lines.index(title) + 1].startswith(fanout)
    assert [line for line in lines if line.startswith("partitions") and f"64, by {rows}" in line]


def test_without_partitions_there_is_nothing_to_show() -> None:
    assert not [line for line in explained(None, 1) if line.startswith(("Fanout", "partitions"))]


def test_flow_records_are_not_divided_among_threads() -> None:
    text = "SELECT tb, srcIP, count(*) AS n FROM FLOW GROUP BY time/60 AS tb, srcIP"
    compiled = compile_queries([QueryText(text, "q")], CompileContext(("a",), partitions=64))
    assert not [line for line in as_text(explain_compiled(compiled)) if line.startswith("Fanout")]


@pytest.mark.parametrize(
    ("aggregate", "runs"),
    [
        (", sum(len) AS a", "partitioned by (srcIP)"),
        (", median(len) AS a", "central: one task computes median"),
        (", first(len) AS a", "central: one task computes first"),
        ("", "central: Spark SQL computes it"),
    ],
)
def test_explain_shows_what_the_job_plans(aggregate: str, runs: str) -> None:
    text = f"SELECT tb, srcIP{aggregate} FROM TCP GROUP BY time/60 AS tb, srcIP"
    compiled = compile_queries([QueryText(text, "q")], CompileContext(("a",), partitions=64))
    (node,) = compiled.program.nodes
    (shown,) = (
        line.split(maxsplit=1)[1]
        for line in map(str.strip, as_text(explain_compiled(compiled)))
        if line.startswith("runs ")
    )
    assert shown == runs
    # What the job asks before it plans tasks: without an operator, SQL is left.
    assert (chain_operator(compiled.program, node) is None) == ("Spark SQL" in runs)
