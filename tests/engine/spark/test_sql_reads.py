"""Which queries of a step SQL reads, among them those whose late rows it only counts."""

from __future__ import annotations

from gscope.engine.operators.base import Work
from gscope.engine.spark.sql_reads import read_by_sql
from gscope.engine.watermarks.release import ReleasedInput
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Column
from gscope.queries.expressions.types import GsqlType

TIME = Column("time", GsqlType.INT, is_nullable=False)
QUERIES = """
QUERY a: SELECT time, len FROM up.IP;
QUERY b: SELECT time, len FROM down.IP;
QUERY m: MERGE a.time : b.time FROM a, b;
QUERY n: SELECT time, count(*) AS packets FROM m GROUP BY time
"""


def work(
    upstream: tuple[str, ...] = (),
    overdue: tuple[str, ...] = (),
    carries: tuple[str, ...] = (),
) -> Work:
    context = CompileContext(("up", "down"))
    (node,) = (
        each
        for each in compile_queries([QueryText(QUERIES, "q")], context).program.nodes
        if each.query == "n"
    )
    taken = ReleasedInput(TIME, upstream=upstream, overdue=overdue, carries=carries)
    return Work(node, 6, 11, (taken,), None, (), read_below=6)


def test_rows_are_read_of_works_that_tasks_have_not_done() -> None:
    assert read_by_sql([work(upstream=("m",))], (), ()) == {"m"}
    assert read_by_sql([work(upstream=("m",))], {"n"}, ()) == set()


def test_rows_that_may_be_late_are_read_even_if_tasks_have_done_the_work() -> None:
    # Without a view of this step's rows, those of an earlier step would be counted, or missed.
    assert read_by_sql([work(overdue=("m",))], {"n", "m"}, ()) == {"m"}


def test_rows_that_are_kept_are_read_unless_they_are_written() -> None:
    assert read_by_sql([work(carries=("m",))], {"n"}, ()) == {"m"}
    assert read_by_sql([work(carries=("m",))], {"n"}, {("n", 0, "m")}) == set()
