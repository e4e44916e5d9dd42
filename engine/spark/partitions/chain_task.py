"""Chains of operators inside Spark's tasks: a task computes all of them for some partitions.

Rows of one operator reach the next in memory. Only rows that are delivered, that wait for a later
step or that operators outside of the chain read are written.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from gscope.engine.spark.partitions.partition_reader import PartitionReader, only
from gscope.engine.spark.tasks import aggregate_task, join_task
from gscope.engine.spark.tasks.aggregate_task import (
    answers_of,
    merged_groups,
    partial_groups,
)
from gscope.engine.spark.tasks.columns import TaskRows, columns_of
from gscope.engine.spark.tasks.join_task import join_rows, of_one_side
from gscope.engine.spark.tasks.task import no_rows
from gscope.engine.storage.counts import Counts
from gscope.engine.storage.parquet_files import FileWriter, part_name
from gscope.engine.storage.payload_counts import payload_counts
from gscope.queries.streams.messages import RowGroup
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gscope.engine.spark.partitions.partition_reader import Piece
    from gscope.engine.spark.tasks.aggregate_task import PartialMerge
    from gscope.engine.spark.tasks.join_task import Homes
    from gscope.engine.spark.tasks.top_task import FirstRows
    from gscope.engine.storage.parquet_files import WrittenFile
    from gscope.queries.expressions.expressions import Column, Expression, NamedExpression
    from gscope.queries.plan.program import JoinNode, MergeNode, SelectionNode


@dataclass(frozen=True, slots=True)
class ChainSide:
    """What one side of an operator reads.

    Attributes:
        pieces: rows in files.
        upstream: operators of the chain, each with the condition that released rows satisfy; None
            if all are released.
    """

    pieces: tuple[Piece, ...]
    upstream: tuple[tuple[str, Expression | None], ...] = ()


_ROW_GROUP_ROWS = 1 << 20
"""With more rows, a portion has several row groups."""


class ChainOperator(Protocol):
    """An operator of a chain: what it computes of the rows of its sides."""

    def run(self, rows: Callable[[int, Sequence[Column]], pa.Table]) -> tuple[pa.Table, Counts]:
        """Return its rows, and what was counted; ``rows`` returns those of a side."""


@dataclass(frozen=True, slots=True)
class ChainMerge:
    """An aggregation."""

    merge: PartialMerge

    def run(self, rows: Callable[[int, Sequence[Column]], pa.Table]) -> tuple[pa.Table, Counts]:
        """See ``ChainOperator``."""
        merge = self.merge
        read = TaskRows.of_table(rows(0, aggregate_task.columns_read(merge)))
        read = read.where(merge.predicate)
        counts = payload_counts(read.outcomes)
        groups = TaskRows.of_table(merged_groups(merge, read, counts))
        table, found = answers_of(merge, groups)
        return table, counts + found


@dataclass(frozen=True, slots=True)
class ChainSub:
    """The sub node of a split aggregation: partial groups, which its super node folds again."""

    merge: PartialMerge

    def run(self, rows: Callable[[int, Sequence[Column]], pa.Table]) -> tuple[pa.Table, Counts]:
        """See ``ChainOperator``."""
        read = TaskRows.of_table(rows(0, aggregate_task.columns_read(self.merge)))
        read = read.where(self.merge.predicate)
        table = partial_groups(self.merge, read)
        return table, payload_counts(read.outcomes)


@dataclass(frozen=True, slots=True)
class ChainJoin:
    """A join.

    Attributes:
        node: the join, ``numbered`` if it is an interval join.
        homes: as of ``JoinTask``.
    """

    node: JoinNode
    homes: Homes

    def run(self, rows: Callable[[int, Sequence[Column]], pa.Table]) -> tuple[pa.Table, Counts]:
        """See ``ChainOperator``."""
        read = join_task.columns_read(self.node)
        sides = []
        for side, predicate in enumerate(self.node.predicates):
            condition = predicate and of_one_side(predicate)
            wanted = [replace(column, input=0) for column in read if column.input == side]
            found = rows(side, [*wanted, *columns_of(condition)])
            sides.append(TaskRows.of_table(found).where(condition))
        written: list[pa.Table] = []
        counts = join_rows(self.node, (sides[0], sides[1]), self.homes, written.append)
        return pa.concat_tables(written, promote_options="permissive"), counts


@dataclass(frozen=True, slots=True)
class ChainSelection:
    """A selection."""

    node: SelectionNode

    def run(self, rows: Callable[[int, Sequence[Column]], pa.Table]) -> tuple[pa.Table, Counts]:
        """See ``ChainOperator``."""
        node = self.node
        expressions = [column.expression for column in node.columns]
        read = TaskRows.of_table(rows(0, list(columns_of(node.predicate, *expressions))))
        read = read.where(node.predicate)
        return read.table(node.columns), payload_counts(read.outcomes)


@dataclass(frozen=True, slots=True)
class ChainUnion:
    """A merge: the rows of all sides."""

    node: MergeNode
    columns: tuple[Column, ...]

    def run(self, rows: Callable[[int, Sequence[Column]], pa.Table]) -> tuple[pa.Table, Counts]:
        """See ``ChainOperator``."""
        names = [column.name for column in self.columns]
        sides = [rows(side, self.columns).select(names) for side in range(len(self.node.inputs))]
        return pa.concat_tables(sides, promote_options="permissive"), Counts()


@dataclass(frozen=True, slots=True)
class ChainTop:
    """The sub node of ORDER BY … LIMIT: the first rows of one part."""

    columns: tuple[NamedExpression, ...]
    top: FirstRows

    def run(self, rows: Callable[[int, Sequence[Column]], pa.Table]) -> tuple[pa.Table, Counts]:
        """See ``ChainOperator``."""
        expressions = [column.expression for column in self.columns]
        read = TaskRows.of_table(rows(0, list(columns_of(*expressions))))
        return self.top.of(read.table(self.columns)), Counts()


@dataclass(frozen=True, slots=True)
class ChainFile:
    """A file of rows of one operator.

    Attributes:
        folder: its folder.
        temporal: the temporal columns of the rows.
        within: the condition that the rows satisfy; None for all rows.
    """

    folder: Path
    temporal: tuple[str, ...]
    within: Expression | None = None


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One operator of a chain.

    Attributes:
        query: its name.
        operator: what it computes.
        sides: what it reads.
        files: what is written of its rows.
    """

    query: str
    operator: ChainOperator
    sides: tuple[ChainSide, ...]
    files: tuple[ChainFile, ...] = ()


@dataclass(frozen=True, slots=True)
class ChainResult:
    """The result of the one attempt of a task that counts.

    Attributes:
        files: the folder and the report of each file, and the partitions of its row groups.
        counts: what was counted.
        tuples: the rows of each operator.
        cpu_ns: the CPU time that the thread spent on each operator, in ns.
    """

    files: tuple[tuple[Path, WrittenFile, tuple[RowGroup, ...]], ...]
    counts: Counts
    tuples: Counter[str]
    cpu_ns: Counter[str]


@dataclass(frozen=True, slots=True)
class ChainTask:
    """All operators of a chain over some partitions.

    Attributes:
        steps: the operators, inputs before those that read them.
        partitions: the number of partitions of the run.
        portions: the partitions of the task, those that are computed at a time together.
        number: the number of the task, which orders its files among those of other tasks.
    """

    steps: tuple[ChainStep, ...]
    partitions: int
    portions: tuple[tuple[int, ...], ...]
    number: int

    def run(self, attempt: str) -> ChainResult:
        """Compute all rows; ``attempt`` makes the names of files unique."""
        name = part_name(self.number, attempt)
        writers = {
            file: _Writer(FileWriter(file.folder, name, file.temporal))
            for step in self.steps
            for file in step.files
        }
        counts = Counts()
        tuples: Counter[str] = Counter()
        cpu_ns: Counter[str] = Counter()
        last = self._last_readers()
        with PartitionReader(self.partitions, self.portions) as reader:
            for portion in range(len(self.portions)):
                tables: dict[str, pa.Table] = {}
                for place, step in enumerate(self.steps):
                    began_ns = time.thread_time_ns()
                    table, found = step.operator.run(_side_rows(step, reader, portion, tables))
                    counts += found
                    for file in step.files:
                        writers[file].write(_where(table, file.within), self.portions[portion])
                    tuples[step.query] += table.num_rows
                    cpu_ns[step.query] += time.thread_time_ns() - began_ns
                    tables[step.query] = table
                    for query in [each for each in tables if last.get(each, -1) <= place]:
                        del tables[query]
        files = [(file.folder, *writer.close()) for file, writer in writers.items()]
        return ChainResult(tuple(files), counts, tuples, cpu_ns)

    def _last_readers(self) -> Mapping[str, int]:
        """Return the place of the last operator that reads the rows of each."""
        return {
            query: place
            for place, step in enumerate(self.steps)
            for side in step.sides
            for query, _ in side.upstream
        }


class _Writer:
    """A file of rows whose portions have the types of the first, and a row group each."""

    def __init__(self, file: FileWriter) -> None:
        self._file = file
        self._schema: pa.Schema | None = None
        self._groups: list[RowGroup] = []
        self._is_grouped = True

    def write(self, table: pa.Table, partitions: Sequence[int]) -> None:
        """Append the rows of some partitions that follow each other."""
        if self._schema is None:
            self._schema = table.schema
        elif not table.num_rows:
            return
        self._file.write(table if table.schema == self._schema else table.cast(self._schema))
        if table.num_rows:
            group = RowGroup(partitions[0], partitions[-1] + 1, table.num_rows, table.nbytes)
            self._groups.append(group)
        self._is_grouped = self._is_grouped and 0 < table.num_rows <= _ROW_GROUP_ROWS

    def close(self) -> tuple[WrittenFile, tuple[RowGroup, ...]]:
        """Complete the file; return its report, and its row groups unless some hold no portion."""
        file = self._file.close()
        assert file is not None
        return file, tuple(self._groups) if self._is_grouped else ()


def _side_rows(
    step: ChainStep, reader: PartitionReader, portion: int, tables: Mapping[str, pa.Table]
) -> Callable[[int, Sequence[Column]], pa.Table]:
    def rows(side: int, columns: Sequence[Column]) -> pa.Table:
        found = list(_parts(step.sides[side], reader, portion, tables, columns))
        if len(found) == 1:
            return found[0]
        # Rows of queries have integers of 64 bits.
        return pa.concat_tables(found or [no_rows(columns)], promote_options="permissive")

    return rows


def _parts(
    side: ChainSide,
    reader: PartitionReader,
    portion: int,
    tables: Mapping[str, pa.Table],
    columns: Sequence[Column],
) -> Iterator[pa.Table]:
    names = list(dict.fromkeys(column.name for column in columns))
    for piece in side.pieces:
        yield only(reader.rows(piece, portion, columns), names)
    for query, within in side.upstream:
        yield only(_where(tables[query], within), names)


def _where(table: pa.Table, condition: Expression | None) -> pa.Table:
    if condition is None:
        return table
    return table.filter(pa.array(TaskRows.of_table(table).vector(condition).is_true()))
