"""Copies without the rows above their epoch's threshold, against a loop over all rows."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.engine.operators.base import Work
from gscope.engine.spark.staging.trimming import Trimming
from gscope.engine.steps.steps import Step
from gscope.engine.watermarks.bounds import ENDED, NOTHING
from gscope.engine.watermarks.release import ReleasedInput
from gscope.engine.watermarks.trim import ThresholdRange, Trim
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Column
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD, HashKey, hash_terms
from gscope.queries.streams.messages import Batch, Extent

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.engine.watermarks.bounds import Bound

KEY = HashKey.of_seed(3)
TB = Column("tb", GsqlType.INT, is_nullable=False)
PORT = Column("port", GsqlType.INT, is_nullable=False)
HALF = FULL_THRESHOLD // 2
NODE = compile_queries(
    [QueryText("SELECT tb, srcPort FROM TCP GROUP BY time as tb, srcPort", "q")],
    CompileContext(("a",), {}),
).program.nodes[0]


def segment(folder: Path, random: Random, number: int, epochs: range) -> Batch:
    """A segment of the log with rows of some epochs, in several row groups."""
    rows = [(random.choice(epochs), random.randrange(50)) for _ in range(100)]
    table = pa.table({"tb": [r[0] for r in rows], "port": [r[1] for r in rows], "row": range(100)})
    path = folder / f"{number}.parquet"
    pq.write_table(table, path, row_group_size=30)
    found = [r[0] for r in rows]
    extent = Extent("tb", min(found), max(found))
    return Batch("s", number, path.name, 100, path.stat().st_size, (extent,))


def trim(*ranges: tuple[Bound, Bound, int, int]) -> Trim:
    made = tuple(ThresholdRange(*each) for each in ranges)
    return Trim(made, TB, (PORT,), KEY, is_logged=True)


def rows_of(folder: Path, batch: Batch) -> list[tuple[int, int, int]]:
    table = pq.read_table(folder / batch.path, partitioning=None)
    assert table.num_rows == batch.rows
    return list(zip(*(table[name].to_pylist() for name in ("tb", "port", "row")), strict=True))


def applied(folder: Path, work: Work) -> tuple[ReleasedInput, int]:
    carry = folder / "carry"
    carry.mkdir(exist_ok=True)
    step, counts = Trimming(folder, carry).applied(Step(7, (work,)))
    (taken,) = step.works[0].inputs
    assert taken.trim is None
    return taken, counts.get("q", 0)


@pytest.mark.parametrize("seed", range(20))
def test_rows_above_the_threshold_of_an_epoch_of_the_step_are_left_out(
    seed: int, tmp_path: Path
) -> None:
    random = Random(seed)
    # The name of a folder may look like a partition.
    folder = tmp_path / "run=5"
    folder.mkdir()
    batches = [segment(folder, random, n, range(10 + n, 16 + n)) for n in range(4)]
    low, high = random.choice([(NOTHING, 15), (12, ENDED), (12, 17), (NOTHING, ENDED)])
    ranges = trim(
        (NOTHING, 13, FULL_THRESHOLD, FULL_THRESHOLD),
        (13, 14, HALF, FULL_THRESHOLD),
        (14, 16, HALF // 2, HALF),
        (16, ENDED, HALF, HALF),
    )
    ports = tuple(("s", batch) for batch in batches)
    late = ((ports[1], 12),)
    read = ReleasedInput(TB, ports, ports[:1], straddles=True, late_below=late, trim=ranges)
    taken, count = applied(folder, Work(NODE, low, high, (read,)))
    expected = 0
    for (_, batch), (_, copied) in zip(read.batches, taken.batches, strict=True):
        kept = []
        for row in rows_of(folder, batch):
            epoch, port, _ = row
            limits = [r.threshold for r in ranges.ranges if r.first <= epoch < r.end]
            is_whole = epoch < 13 or epoch >= 16
            is_above = hash_terms((port,), (GsqlType.INT,), KEY) > limits[0]
            if is_above and not is_whole and low <= epoch < high:
                expected += 1
            else:
                kept.append(row)
        assert rows_of(folder, copied) == kept
        assert (copied.sequence, copied.extents) == (batch.sequence, batch.extents)
    assert count == expected
    assert taken.partially_read == taken.batches[:1]
    assert taken.late_below == ((taken.batches[1], 12),)


def test_a_segment_of_which_no_row_is_left_is_an_empty_file(tmp_path: Path) -> None:
    batch = segment(tmp_path, Random(1), 0, range(5, 6))
    read = ReleasedInput(TB, (("s", batch),), trim=trim((NOTHING, ENDED, 0, FULL_THRESHOLD)))
    taken, count = applied(tmp_path, Work(NODE, NOTHING, 6, (read,)))
    ((_, copied),) = taken.batches
    assert (copied.rows, count) == (0, 100)
    assert rows_of(tmp_path, copied) == []


def test_a_segment_without_rows_to_leave_out_is_read_as_it_is(tmp_path: Path) -> None:
    batch = segment(tmp_path, Random(1), 0, range(5, 8))
    ranges = trim(
        (NOTHING, 7, FULL_THRESHOLD, FULL_THRESHOLD),
        (7, 9, 0, FULL_THRESHOLD),
        (9, ENDED, HALF, HALF),
    )
    read = ReleasedInput(TB, (("s", batch),), straddles=True, trim=ranges)
    taken, count = applied(tmp_path, Work(NODE, NOTHING, 7, (read,)))
    assert (taken.batches, count) == (read.batches, 0)
    assert not list((tmp_path / "carry").iterdir())
