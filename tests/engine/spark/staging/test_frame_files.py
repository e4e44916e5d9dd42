"""Files that Spark writes, and states: whatever is lost on the way is refused, not committed."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.engine.spark.staging import frame_files
from gscope.engine.spark.staging.frame_files import write_frame
from gscope.engine.spark.tasks.state_runner import SavedState
from gscope.engine.storage.parquet_files import files_in
from gscope.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gscope.engine.storage.parquet_files import WrittenFile


def files_of(folder: Path) -> list[Path]:
    return sorted(folder.rglob("part-*.parquet"))


def attempt_of(path: Path) -> Path:
    """Where another attempt of the task that wrote ``path`` would have written."""
    return path.with_name(re.sub(r"(part-[0-9]+-)", r"\1again-", path.name))


def lose_one(folder: Path) -> None:
    files_of(folder)[1].unlink()


def cut_one(folder: Path) -> None:
    path = files_of(folder)[1]
    path.write_bytes(path.read_bytes()[:-9])


def empty_one(folder: Path) -> None:
    files_of(folder)[1].write_bytes(b"")


def repeat_one(folder: Path) -> None:
    path = files_of(folder)[1]
    shutil.copy(path, attempt_of(path))


def lose_one_and_repeat_another(folder: Path) -> None:
    """As many rows as were written, between the same extents."""
    path, other = files_of(folder)[1:3]
    path.unlink()
    shutil.copy(other, attempt_of(other))


def put_one_in_place_of_another(folder: Path) -> None:
    """The rows of one task twice, once under the name of another that wrote as many."""
    path, other = files_of(folder)[1:3]
    shutil.copy(other, path.with_name(path.name.replace("part-00001", "part-00007")))
    path.unlink()


LOSSES = [
    lose_one,
    cut_one,
    empty_one,
    repeat_one,
    lose_one_and_repeat_another,
    put_one_in_place_of_another,
]


@pytest.mark.spark
@pytest.mark.parametrize("partition_by", [None, "kb"])
@pytest.mark.parametrize("lose", LOSSES)
def test_a_loss_between_tasks_and_driver_is_refused(
    lose: Callable[[Path], None],
    partition_by: str | None,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four tasks write as many rows each, of the same times."""

    def lose_and_list(folder: Path, *arguments: Any) -> list[WrittenFile]:
        lose(folder)
        return files_in(folder, *arguments)

    rows = spark.range(0, 40, 1, 4).selectExpr("id % 10 as t", "id", "id % 10 div 5 as kb")
    monkeypatch.setattr(frame_files, "files_in", lose_and_list)
    with pytest.raises(EngineError, match="executors must share the folder of the job"):
        write_frame(rows, tmp_path / "out", ("t",), partition_by)


@pytest.mark.spark
def test_what_is_whole_is_reported_by_name(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 40, 1, 4).selectExpr("id % 10 as t", "id", "id % 10 div 5 as kb")
    for number, partition_by in enumerate([None, "kb"]):
        folder = tmp_path / str(number)
        files = write_frame(rows, folder, ("t",), partition_by)
        assert sorted(str(folder / file.name) for file in files) == list(map(str, files_of(folder)))
        assert sum(file.rows for file in files) == 40
        written = pa.concat_tables(
            pq.read_table(folder / file.name, columns=["t", "id"], partitioning=None)
            for file in files
        )
        assert sorted(written["id"].to_pylist()) == list(range(40))
    empty = rows.where("id < 0")
    assert sum(file.rows for file in write_frame(empty, tmp_path / "empty", ("t",))) == 0


@pytest.mark.spark
def test_row_groups_of_long_rows_fit_into_memory(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 160, 1, 1).selectExpr("id", "repeat('x', 262144) AS data")
    (file,) = write_frame(rows, tmp_path / "rows", ("id",))
    metadata = pq.read_metadata(tmp_path / "rows" / file.name)
    sizes = [metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups)]
    assert sum(sizes) > 40 << 20
    assert max(sizes) < 20 << 20


def state(folder: Path) -> SavedState:
    """The state that three tasks left, two groups each."""
    names = []
    for task in range(3):
        names.append(f"part-{task:05d}-a.parquet")
        table = pa.table({"kb": pa.array([task] * 2, pa.int32()), "k0": [task, task + 10]})
        pq.write_table(table, folder / names[-1])
    return SavedState(str(folder), tuple(names), 6)


@pytest.mark.parametrize("lose", LOSSES)
def test_a_state_is_read_whole_or_not_at_all(lose: Callable[[Path], None], tmp_path: Path) -> None:
    left = state(tmp_path)
    lose(tmp_path)
    if lose is repeat_one:
        # The file of another attempt is not the state's.
        assert left.read([("kb", "=", 1)]).to_pydict() == {"kb": [1, 1], "k0": [1, 11]}
        return
    with pytest.raises(EngineError, match="executors must share the folder of the job"):
        left.read([("kb", "=", 1)])


def test_a_state_with_other_rows_than_were_committed_is_refused(tmp_path: Path) -> None:
    left = state(tmp_path)
    pq.write_table(pa.table({"kb": pa.array([1], pa.int32()), "k0": [1]}), files_of(tmp_path)[1])
    with pytest.raises(EngineError, match=r"expected the state of 6 rows in .*, got 5;"):
        left.read()
    assert len(files_of(tmp_path)) == 3
