"""Operators that keep rows from step to step: what their tasks read, write and report.

An operator reads the state that its last step left, and writes answers and the next state, each to
a folder of its own. The driver runs a small step itself; tasks of Spark run the parts of a large
one. Tasks write files, and return what they wrote and counted.
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from gscope.engine.spark.sql.expressions import SPARK_TYPES, quote
from gscope.engine.spark.sql.file_frames import frame_of_files
from gscope.engine.spark.tasks.task import measured_attempts
from gscope.engine.storage.counts import Counts
from gscope.engine.storage.parquet_files import State, accept
from gscope.engine.storage.transfer.access import parquet_rows, read_parquet
from gscope.errors import EngineError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame

    from gscope.engine.operators.base import Work
    from gscope.engine.spark.spark import Spark
    from gscope.engine.spark.sql.inputs import InputViews
    from gscope.engine.spark.tasks.here import TasksHere
    from gscope.engine.storage.commits import Output
    from gscope.engine.storage.parquet_files import WrittenFile
    from gscope.queries.catalog.user_functions.files import UserFile
    from gscope.queries.expressions.schema import Schema

_I = TypeVar("_I")


@dataclass(frozen=True, slots=True)
class FoldResult:
    """The result of an operator that keeps rows, in a step.

    Attributes:
        files: the files of answers that hold rows, in the order of their tasks.
        state: the rows for the next step; None if there are none.
        frame: the answers, for queries that read them in the same step; None if none does.
        output: the answers as an output; None until it is staged, and if they are not delivered.
        left_out: the number of answers, and of states of groups, left out because a sample's
            threshold fell.
        cpu_ns: the CPU time of the thread and of the tasks that made it, in ns.
        is_sql: whether Spark SQL evaluated a part.
    """

    files: tuple[WrittenFile, ...]
    state: State | None
    frame: DataFrame | None = None
    output: Output | None = None
    left_out: int = 0
    cpu_ns: int = 0
    is_sql: bool = False

    @property
    def rows(self) -> int:
        """The number of answers."""
        return sum(file.rows for file in self.files)


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """The files of a task, each None if it has no rows, and what the task counted and left out."""

    answers: WrittenFile | None
    state: WrittenFile | None
    counts: Counts
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class SavedState:
    """The rows that an earlier step left: files in a folder, and the number of their rows."""

    folder: str
    files: tuple[str, ...]
    rows: int

    def read(self, filters: Iterable[tuple[str, str, int]] | None = None) -> pa.Table:
        """Return the rows that ``filters`` let pass, as of ``pyarrow.parquet``; None for all.

        Raises:
            EngineError: some rows are missing.
        """
        paths = [str(Path(self.folder) / name) for name in self.files]
        try:
            rows = sum(map(parquet_rows, paths))
            if rows == self.rows:
                chosen = None if filters is None else list(filters)
                tables = [read_parquet(path, None, chosen) for path in paths]
                return pa.concat_tables(tables, promote_options="permissive")
        except (OSError, pa.ArrowException) as error:
            message = (
                f"cannot read the state of {self.rows} rows in {self.folder}: {error};"
                " executors must share the folder of the job"
            )
            raise EngineError(message) from error
        message = (
            f"expected the state of {self.rows} rows in {self.folder}, got {rows};"
            " executors must share the folder of the job"
        )
        raise EngineError(message)


@dataclass(frozen=True, slots=True)
class Places:
    """What the tasks of one step read and write.

    Attributes:
        before: the state that the step before left; None if there is none.
        answers: the folder of answers.
        after: the folder of the next state.
        scratch: a folder that may be created, and is removed at the end of the step.
    """

    before: SavedState | None
    answers: Path
    after: Path
    scratch: Path


class _Tasks(threading.local):
    """What the tasks of Spark that a thread has run have cost so far, in ns."""

    cpu_ns = 0


class StateRunner:
    """The operators of one program that keep rows in one way.

    Args:
        spark: runs the tasks.
        here: runs them while Spark is not ready.
        sql: returns the rows of a text of Spark SQL.
        inputs: the rows that operators read.
        carry_folder: the folder of states; files there that no commit names are deleted in time.
        user_files: the user code that a worker installs before it folds.

    Attributes:
        counts: the counts of all steps so far.
    """

    def __init__(
        self,
        spark: Spark,
        here: TasksHere,
        sql: Callable[[str], DataFrame],
        inputs: InputViews,
        carry_folder: Path,
        user_files: tuple[UserFile, ...] = (),
    ) -> None:
        self._spark = spark
        self._here = here
        self._sql = sql
        self._inputs = inputs
        self._carry = carry_folder
        self._user_files = user_files
        self.counts = Counts()
        self._counting = threading.Lock()
        self._tasks = _Tasks()

    @property
    def task_cpu_ns(self) -> int:
        """The CPU time in ns of the tasks of Spark that this thread has run so far."""
        return self._tasks.cpu_ns

    def _attempted(
        self, items: Sequence[_I], work: Callable[[_I, str], TaskFiles]
    ) -> list[TaskFiles]:
        """Return the result of ``work`` for each item, each in a task of Spark or here."""
        if self._spark.is_ready:
            files, cpu_ns = measured_attempts(self._spark.session, items, work)
        else:
            files, cpu_ns = self._here.measured_attempts(items, work)
        self._tasks.cpu_ns += cpu_ns
        return files

    def _run(
        self,
        work: Work,
        step: int,
        answers: Path | None,
        tasks: Callable[[Places], Sequence[TaskFiles]],
    ) -> FoldResult:
        """Run the tasks of a step, and return its result.

        Args:
            work: the work of the operator.
            step: the number of the step.
            answers: a folder to create for Parquet files with the node's rows; None if they are
                only read in the same step.
            tasks: runs the tasks.
        """
        name = self._name(work, step)
        places = Places(
            self._saved(work),
            answers or self._carry / f"{name}-answers",
            self._carry / f"{name}-state",
            self._carry / f"{name}-rows",
        )
        places.answers.mkdir()
        places.after.mkdir()
        written = tasks(places)
        shutil.rmtree(places.scratch, ignore_errors=True)
        with self._counting:
            for each in written:
                self.counts += each.counts
        answered = tuple(each.answers for each in written if each.answers is not None)
        states = [each.state for each in written if each.state is not None]
        # Once it is ready Spark runs all tasks; so it has run none of these.
        is_own = not self._spark.is_ready
        accept(places.answers, answered, is_own=is_own)
        accept(places.after, states, is_own=is_own)
        rows, size = sum(file.rows for file in states), sum(file.size_bytes for file in states)
        names = tuple(file.name for file in states)
        query = work.node.query
        state = State(query, step, places.after.name, rows, size, (), files=names) if rows else None
        left_out = sum(each.left_out for each in written)
        if answers is None:
            frame = self._frame(work.node.schema, places.answers, answered)
            return FoldResult(answered, state, frame, left_out=left_out)
        if not answered:
            answers.rmdir()
        return FoldResult(answered, state, left_out=left_out)

    def _name(self, work: Work, step: int) -> str:
        """Return the beginning of the names of the folders of a step."""
        return f"{step:012d}-{self._inputs.view(work.node.query)}"

    def _saved(self, work: Work) -> SavedState | None:
        if work.state is None:
            return None
        return SavedState(str(self._carry / work.state.path), work.state.files, work.state.rows)

    def _frame(self, schema: Schema, folder: Path, files: Sequence[WrittenFile]) -> DataFrame:
        """Return the rows of ``files`` in a folder."""
        types = ", ".join(f"{quote(c.name)} {SPARK_TYPES[c.type]}" for c in schema.columns)
        paths = [str(folder / file.name) for file in files]
        if not paths:
            return self._spark.session.createDataFrame([], types)
        return frame_of_files(self._spark.session, types, paths)
