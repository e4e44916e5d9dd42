"""What the job's statistics say of a node is what the counts of the node say, one by one."""

from __future__ import annotations

from gscope.engine.steps.node_counts import NodeRun
from gscope.engine.steps.steps import Steps
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import Batch, Extent

QUERIES = """
DEFINE { query_name 'both'; }
MERGE a.time : b.time FROM a, b;
DEFINE { query_name 'a'; }
SELECT time, dstPort, srcPort FROM eth0.TCP;
DEFINE { query_name 'b'; }
SELECT time, dstPort, srcPort FROM eth1.TCP;
DEFINE { query_name 'tens'; }
SELECT tb, count(*) as cnt FROM both GROUP BY time/10 as tb;
"""


def test_a_merge_gives_what_it_has_read_and_other_nodes_what_steps_counted() -> None:
    compiled = compile_queries([QueryText(QUERIES, "q.gsql")], CompileContext(("eth0", "eth1")))
    steps = Steps(compiled.program)
    for number, stream in enumerate(steps.streams):
        extents = tuple(
            Extent(column.name, 5, 6)
            for lfta in compiled.program.lftas
            if stream in lfta.streams
            for column in lfta.schema.temporal
        )
        steps.on_messages([Batch(stream, 0, "segments/s", 30 + number, 100, extents)])
    (merge,) = (name for name, each in steps.operators.items() if "both" in name)
    steps.operators[merge].late_tuples = 4
    steps.counts.on_evaluated([NodeRun("tens", 2, cpu_ns=7), NodeRun(merge, 99)])
    for name in steps.operators:
        fields = steps.counts.fields(name)
        assert fields["tuples_in_total"] == steps.counts.tuples_in(name)
        assert fields["tuples_read_total"] == steps.counts.tuples_read(name)
        assert fields["tuples_out_total"] == steps.counts.tuples_out(name)
    assert steps.counts.fields("tens")["tuples_out_total"] == 2
    reached = steps.counts.tuples_in(merge)
    assert reached == sum(30 + number for number in range(len(steps.streams)))
    assert steps.counts.fields(merge)["tuples_out_total"] == 0
    for side in steps.operators[merge].sides:
        for port in side.ports.values():
            port.pending.clear()
    assert steps.counts.fields(merge)["tuples_out_total"] == reached - 4
