"""Large steps of a sampling operator: tasks by supergroup give what the driver gives alone."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engine.sampling.sampled import Row, Sampled
from tests.engine.sampling.test_sample_steps import QUERY, Plane, messages_of, packets_of

from gscope.engine.sampling.tuples import Segment
from gscope.engine.spark.spark import ReadySpark
from gscope.engine.spark.sql.inputs import InputViews
from gscope.engine.spark.tasks.here import TasksHere
from gscope.engine.spark.tasks.sample_task import SampleRunner, SampleTask, parts_of
from gscope.engine.spark.tasks.state_runner import SavedState

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_parts_are_by_value_and_cover_all_rows() -> None:
    keys = pa.table({"k0": [1, 2, None, 1, 0.0, -0.0], "k1": [b"a", b"b", None, b"a", b"c", b"c"]})
    parts = parts_of(keys, 4)
    assert parts[0] == parts[3]
    assert parts[4] == parts[5]
    alone = [int(parts_of(keys.slice(row, 1), 4)[0]) for row in range(6)]
    assert alone == parts.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_tasks_of_all_parts_give_the_answers_and_states_of_one(tmp_path: Path, seed: int) -> None:
    query = Sampled(QUERY)
    plane = Plane(query, tmp_path)
    packets = sorted(
        (each for every in packets_of(random.Random(seed)).values() for each in every),
        key=lambda each: each["time_ns"],
    )
    windows = sorted({each["time"] // 5 for each in packets})
    steps = [windows[: len(windows) // 2], windows[len(windows) // 2 :]]
    expected, _ = query.answers(packets)
    found: list[Row] = []
    before: SavedState | None = None
    for number, step in enumerate(steps):
        path = plane.segment([each for each in packets if each["time"] // 5 in step])
        answers, after = tmp_path / f"answers{number}", tmp_path / f"states{number}"
        answers.mkdir()
        after.mkdir()
        task = SampleTask(query.node, before, answers, after, ())
        for part in range(4):
            task.run_part(part, 4, "x", [Segment(path)])
        for file in sorted(answers.iterdir()):
            found += query.plain(pq.read_table(file))
        files = sorted(after.iterdir())
        rows = sum(pq.read_metadata(file).num_rows for file in files)
        before = SavedState(str(after), tuple(file.name for file in files), rows)
    assert sorted(found) == sorted(expected)


@pytest.mark.spark
def test_spark_runs_the_tasks_of_large_steps(tmp_path: Path, spark: SparkSession) -> None:
    query = Sampled(QUERY)
    plane = Plane(query, tmp_path)
    chance = random.Random(1)
    packets = packets_of(chance)
    both = sorted([*packets["a"], *packets["b"]], key=lambda each: each["time_ns"])
    expected, _ = query.answers(both)
    for name, every in packets.items():
        plane.steps.on_messages(messages_of(chance, plane, name, every))
    carry = tmp_path / "carry"
    carry.mkdir()
    inputs = InputViews(ReadySpark(spark), plane.program, tmp_path, carry)
    runner = SampleRunner(ReadySpark(spark), TasksHere(), spark.sql, inputs, carry, ())
    found: list[Row] = []
    while (step := plane.steps.next()) is not None:
        for work in step.works:
            folder = tmp_path / f"step{step.number}"
            result = runner.run(work, step.number, folder, is_small=False)
            for file in result.files:
                found += query.plain(pq.read_table(folder / file.name))
    assert sorted(found) == sorted(expected)
