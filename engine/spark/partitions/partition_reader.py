"""The rows of some partitions in the files of a step.

A file whose row groups are labelled with partitions is read group by group. Of row groups that are
of several portions, and of files without labels, a task reads all rows once, hashes them and keeps
those of its own partitions.

A task goes through its partitions in *portions*, so that the groups of one portion fit into a near
cache: that is faster than one large table of groups, also on one core.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from gscope.engine.spark.tasks.columns import TaskRows, columns_of
from gscope.engine.spark.tasks.task import no_rows
from gscope.engine.storage.transfer.access import OpenParquet
from gscope.queries.plan.partitioning.value_columns import partitions_of_rows
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from gscope.queries.expressions.expressions import Column, Expression
    from gscope.queries.plan.program_partitioning import PartitionMember


@dataclass(frozen=True, slots=True)
class PartitionedFile:
    """A file and where the rows of partitions are in it.

    Attributes:
        path: the path of the file.
        row_groups: for each row group in order, the first of the partitions that its rows may be
            of, and the one after the last; None if any row may be of any partition.
        owner: the partition that all of its rows are in, modulo the number of partitions, where
            rows may be divided in any way; else None.
    """

    path: str
    row_groups: tuple[tuple[int, int], ...] | None = None
    owner: int | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of some files.

    Attributes:
        files: the files.
        members: what divides the rows of files without labels.
        within: the condition that released rows satisfy; None if all rows are released.
    """

    files: tuple[PartitionedFile, ...]
    members: tuple[PartitionMember, ...]
    within: Expression | None = None


class PartitionReader:
    """The rows of one task.

    Args:
        partitions: the number of partitions of the run.
        portions: the partitions of the task, those of each portion together, without gaps.
    """

    def __init__(self, partitions: int, portions: Sequence[Sequence[int]]) -> None:
        self._partitions = partitions
        self._portions = portions
        self._open: dict[str, OpenParquet] = {}
        self._hashed: dict[tuple[str, tuple[str, ...]], list[pa.Table]] = {}
        self._places = np.full(partitions, len(portions), np.int16)
        for place, chosen in enumerate(portions):
            self._places[list(chosen)] = place

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()

    def rows(self, piece: Piece, portion: int, columns: Iterable[Column]) -> pa.Table:
        """Return the released rows of a piece in a portion, with these columns at least."""
        columns = (*columns, *columns_of(piece.within))
        names = tuple(dict.fromkeys(column.name for column in columns))
        tables = [self._of_file(file, piece.members, portion, names) for file in piece.files]
        if not tables:
            return no_rows(columns)
        # The log stores integers in few bits, a step in 64.
        table = pa.concat_tables(tables, promote_options="permissive")
        if piece.within is None:
            return table
        chosen = TaskRows.of_table(table).vector(piece.within).is_true()
        return table.filter(pa.array(chosen))

    def _of_file(
        self,
        file: PartitionedFile,
        members: Sequence[PartitionMember],
        portion: int,
        names: tuple[str, ...],
    ) -> pa.Table:
        chosen = self._portions[portion]
        if file.owner is not None:
            is_own = file.owner % self._partitions in chosen
            groups = range(len(self._opened(file.path).row_counts) if is_own else 0)
            return self._groups(file.path, groups, names)
        if file.row_groups is None:
            return self._hashed_rows(file.path, members, names)[portion]
        whole = [n for n, each in enumerate(file.row_groups) if _is_within(each, chosen)]
        table = self._groups(file.path, whole, names)
        shared = self._shared(file.row_groups)
        if not shared:
            return table
        rest = self._hashed_rows(file.path, members, names, shared)[portion]
        return pa.concat_tables([table, rest]) if rest.num_rows else table

    def _shared(self, row_groups: Sequence[tuple[int, int]]) -> list[int]:
        """Return the row groups with rows of the task that are of more than one portion."""
        own = (self._portions[0][0], self._portions[-1][-1] + 1)
        return [
            number
            for number, (first, end) in enumerate(row_groups)
            if first < own[1]
            and end > own[0]
            and not any(_is_within((first, end), portion) for portion in self._portions)
        ]

    def _hashed_rows(
        self,
        path: str,
        members: Sequence[PartitionMember],
        names: tuple[str, ...],
        groups: Sequence[int] | None = None,
    ) -> list[pa.Table]:
        """Return the rows of each portion in some row groups, None for all, hashed once."""
        tables = self._hashed.get((path, names))
        if tables is None:
            tables = self._divided(path, members, names, groups)
            self._hashed[path, names] = tables
        return tables

    def _groups(self, path: str, places: Sequence[int], names: Sequence[str]) -> pa.Table:
        file = self._opened(path)
        if names:
            return file.read(list(places), list(names))
        return bare_rows(sum(file.row_counts[place] for place in places))

    def _divided(
        self,
        path: str,
        members: Sequence[PartitionMember],
        names: Sequence[str],
        groups: Sequence[int] | None,
    ) -> list[pa.Table]:
        file = self._opened(path)
        chosen = range(len(file.row_counts)) if groups is None else groups
        columns = _with_hashed(names, members)
        table = file.read(list(chosen), columns)
        places = self._places[partitions_of_rows(table, members, self._partitions)]
        table = only(table, names)
        own = np.flatnonzero(places < len(self._portions))
        own = own[np.argsort(places[own], kind="stable")]
        table = table.take(pa.array(own))
        ends = np.searchsorted(places[own], np.arange(len(self._portions) + 1))
        return [
            table.slice(begin, end - begin)
            for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
        ]

    def _opened(self, path: str) -> OpenParquet:
        if path not in self._open:
            self._open[path] = OpenParquet(path)
        return self._open[path]


def _with_hashed(names: Sequence[str], members: Sequence[PartitionMember]) -> list[str]:
    """Return the names of columns, and those of the columns that members read."""
    read = [part.name for m in members for value in m.values for part in columns_of(value)]
    return list(dict.fromkeys((*names, *read)))


def only(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return some columns of ``table``, or its bare rows without columns."""
    return table.select(list(names)) if names else bare_rows(table.num_rows)


def bare_rows(count: int) -> pa.Table:
    """Return rows without columns, as a table that keeps their number when it is joined."""
    return pa.table({"": pa.nulls(count)})


def _is_within(bounds: tuple[int, int], portion: Sequence[int]) -> bool:
    return portion[0] <= bounds[0] and bounds[1] <= portion[-1] + 1


def portions(cuts: Sequence[int], rows: int, rows_at_once: int) -> tuple[tuple[int, ...], ...]:
    """Return partitions in portions of about ``rows_at_once`` rows.

    Args:
        cuts: where a portion may begin or end, among them the first partition and the one after the
            last.
        rows: the rows of all these partitions.
        rows_at_once: the rows of a portion.
    """
    parts = len(cuts) - 1
    count = min(parts, max(1, -(-rows // rows_at_once)))
    ends = [cuts[parts * number // count] for number in range(count + 1)]
    return tuple(tuple(range(first, end)) for first, end in itertools.pairwise(ends))
