"""Tasks that Spark runs more than once: one attempt counts, of files as of counters."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext, cloudpickle
from tests.support.shared_spark import archived

from gscope.engine.spark.jvm.gateway import launch_jvm
from gscope.engine.spark.jvm.java import find_java
from gscope.engine.spark.jvm.jvm_settings import JvmSettings
from gscope.engine.spark.jvm.session import SessionSettings, start_session, stop_session
from gscope.engine.spark.sql.attempt_counts import AttemptCounts
from gscope.engine.spark.tasks.task import FileTask, run_tasks
from gscope.engine.storage.counts import Counts
from gscope.engine.storage.parquet_files import FileWriter, WrittenFile, accept
from gscope.errors import EngineError
from gscope.queries.streams.messages import Extent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.support.shared_spark import SharedSpark


# Workers do not find the modules of tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


@pytest.fixture
def retrying(shared_spark: SharedSpark, tmp_path: Path) -> Iterator[SparkSession]:
    """A session that runs a failing task once more, as a cluster does."""
    shared_spark.release()
    (tmp_path / "jvm").mkdir()
    jvm = launch_jvm(archived(JvmSettings(find_java(), heap_bytes=1 << 30)), tmp_path / "jvm")
    session = start_session(jvm, SessionSettings(extra={"spark.master": "local[2,2]"}))
    yield session
    stop_session(session, jvm)


@dataclass(frozen=True)
class FailsOnce:
    """Writes rows and fails, and does both again without failing."""

    number: int

    def run(self, write: Callable[[pa.Table], None]) -> Counts:
        write(pa.table({"t": [self.number, self.number + 10]}))
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0 and self.number == 1:
            message = "the first attempt is lost"
            raise OSError(message)
        return Counts({"tls_sni": 3}, {"q": 2})


@pytest.mark.spark
@pytest.mark.own_session
def test_files_and_counters_are_those_of_the_attempt_that_counts(
    retrying: SparkSession, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    tasks = [FileTask(FailsOnce(number), out, number, ("t",)) for number in range(3)]
    results = run_tasks(retrying, tasks)
    assert len(list(out.iterdir())) == 4
    accept(out, [result.file for result in results])
    assert sorted(path.name for path in out.iterdir()) == [r.file.name for r in results]
    assert pq.read_table(out)["t"].to_pylist() == [0, 10, 1, 11, 2, 12]
    assert [result.file.extents for result in results] == [
        (Extent("t", number, number + 10),) for number in range(3)
    ]
    assert sum((r.counts for r in results), Counts()) == Counts({"tls_sni": 9}, {"q": 6})


@pytest.mark.spark
def test_two_attempts_that_end_well_are_counted_once(spark: SparkSession) -> None:
    counts = AttemptCounts(spark)
    found = Counts({"dns_rcode": 5}, {"q": 1})
    for attempt in (7, 9):
        counts.by_attempt.add({(1, 0): {attempt: found}})
    counts.by_attempt.add({(1, 1): {8: found}})
    # A task counts once for each batch of its rows.
    counts.by_attempt.add({(1, 1): {8: found}})
    assert counts.total() == Counts({"dns_rcode": 15}, {"q": 3})
    counts.by_attempt.add({(1, 0): {11: found}})
    assert counts.total() == Counts({"dns_rcode": 15}, {"q": 3})
    counts.by_attempt.add({(2, 0): {12: found}})
    assert counts.total() == Counts({"dns_rcode": 20}, {"q": 4})


def written(folder: Path, name: str, times: list[int]) -> WrittenFile:
    writer = FileWriter(folder, name, ("t",))
    for time in times:
        writer.write(pa.table({"t": [time], "v": [1]}))
    file = writer.close()
    assert file is not None
    return file


def test_a_file_that_the_driver_does_not_see_is_refused(tmp_path: Path) -> None:
    files = [written(tmp_path, f"part-{number}", [number]) for number in range(2)]
    (tmp_path / "part-1").unlink()
    with pytest.raises(
        EngineError, match=r"cannot read the file .*; executors must share the folder"
    ):
        accept(tmp_path, files)


@pytest.mark.parametrize("times", [[1], [1, 3], [0, 2]])
def test_a_file_that_is_not_as_reported_is_refused(tmp_path: Path, times: list[int]) -> None:
    file = written(tmp_path, "part-0", [1, 2])
    assert file.extents == (Extent("t", 1, 2),)
    written(tmp_path, "part-0", times)
    with pytest.raises(EngineError, match=r"expected 2 rows in \d+ bytes \(t 1 to 2\), got"):
        accept(tmp_path, [file])


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "part-0", [1, 2])
    content = (tmp_path / "part-0").read_bytes()
    (tmp_path / "part-0").write_bytes(content[:-9])
    with pytest.raises(EngineError, match="cannot read the file"):
        accept(tmp_path, [file])


def test_of_own_files_only_the_sizes_are_compared(tmp_path: Path) -> None:
    file = written(tmp_path, "part-0", [1, 2])
    written(tmp_path, "part-1", [3])
    content = (tmp_path / "part-0").read_bytes()
    (tmp_path / "part-0").write_bytes(content[::-1])
    accept(tmp_path, [file], is_own=True)
    assert [path.name for path in tmp_path.iterdir()] == ["part-0"]
    with pytest.raises(EngineError, match="cannot read the file"):
        accept(tmp_path, [file])


def test_an_own_file_that_is_gone_or_of_another_size_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "part-0", [1, 2])
    with (tmp_path / "part-0").open("ab") as longer:
        longer.write(b"x")
    with pytest.raises(EngineError, match=rf"has {file.size_bytes + 1} bytes, of which \d+ were"):
        accept(tmp_path, [file], is_own=True)
    (tmp_path / "part-0").unlink()
    with pytest.raises(EngineError, match="just written: no such file"):
        accept(tmp_path, [file], is_own=True)
