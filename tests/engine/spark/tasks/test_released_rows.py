"""Which rows of batches tasks may read, given what an earlier step has read."""

from __future__ import annotations

from gscope.engine.operators.base import Work
from gscope.engine.spark.tasks.released_rows import UNKNOWN, between, released_condition
from gscope.engine.watermarks.bounds import ENDED, NOTHING
from gscope.engine.watermarks.release import ReleasedInput
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Column
from gscope.queries.expressions.types import GsqlType
from gscope.queries.streams.messages import Batch, Extent

TIME = Column("time", GsqlType.INT, is_nullable=False)
BATCH = ("s", Batch("s", 3, "3.parquet", 20, 100, (Extent("time", 6, 10),)))
MERGE = """
QUERY a: SELECT time, len FROM up.IP;
QUERY b: SELECT time, len FROM down.IP;
QUERY m: MERGE a.time : b.time FROM a, b
"""


def work(taken: ReleasedInput, read_below: int) -> Work:
    program = compile_queries([QueryText(MERGE, "q")], CompileContext(("up", "down"))).program
    return Work(program.nodes[-1], 6, 11, (taken,), None, (), read_below=read_below)


def test_rows_above_the_watermark_may_have_been_read() -> None:
    """An earlier step has read rows below 7; rows of other batches are late below 6 only."""
    taken = ReleasedInput(TIME, (BATCH,), (BATCH,), straddles=True)
    assert released_condition(work(taken, read_below=7), taken) is UNKNOWN


def test_whole_and_straddling_batches() -> None:
    whole = ReleasedInput(TIME, (BATCH,))
    assert released_condition(work(whole, read_below=6), whole) is None
    assert released_condition(work(whole, read_below=7), whole) is None
    partial = ReleasedInput(TIME, (BATCH,), (BATCH,), straddles=True)
    assert released_condition(work(partial, read_below=6), partial) == between(TIME, 6, 11)


def test_without_bounds_all_rows_are_released() -> None:
    assert between(TIME, NOTHING, ENDED) is None
