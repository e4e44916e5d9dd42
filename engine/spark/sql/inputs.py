"""Released rows as Spark SQL text: segments of the log, carries, rows of the same step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.sql.expressions import SPARK_TYPES, column_leaf, quote, to_sql
from gscope.engine.spark.sql.file_frames import frame_of_files
from gscope.engine.watermarks.bounds import ENDED, NOTHING
from gscope.engine.watermarks.ports import batch_span
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import node_inputs
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from gscope.engine.operators.base import Work
    from gscope.engine.spark.spark import Spark
    from gscope.engine.watermarks.bounds import Bound
    from gscope.engine.watermarks.release import ReleasedInput
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.program import HftaNode, Program
    from gscope.queries.streams.messages import Batch


@dataclass(frozen=True, slots=True)
class Sources:
    """The rows that the text of an operator reads, and what else it may rely on.

    Attributes:
        rows: a view or subquery for each side; of a merge, for each side that reads something.
        epochs: the epochs that are answered: from the first bound, and below the second. Outer
            interval joins leave out rows without partners whose epoch is not among them.
        fits_in_memory: whether one side of a join fits into the memory of a task.
    """

    rows: tuple[str, ...]
    epochs: tuple[Bound, Bound] = (NOTHING, ENDED)
    fits_in_memory: bool = True


class InputViews:
    """The rows that operators read, as subqueries over temporary views.

    Args:
        spark: holds the views.
        program: the program whose operators read.
        log_folder: the folder to which the paths of the log's segments are relative.
        carry_folder: the folder to which the paths of carries are relative.
    """

    def __init__(
        self, spark: Spark, program: Program, log_folder: Path, carry_folder: Path
    ) -> None:
        self._spark = spark
        self._program = program
        self._log_folder = log_folder
        self._carry_folder = carry_folder
        self._index = {node.query: index for index, node in enumerate(program.nodes)}

    def view(self, query: str) -> str:
        """Return the view in which the rows that ``query`` gives in a step are registered."""
        return f"query_{self._index[query]}"

    def register(self, query: str, files: Sequence[str]) -> DataFrame:
        """Register Parquet files as the rows that ``query`` gives in this step, and return them."""
        view = self.view(query)
        self._read(view, self._program.schema(query), list(files), is_logged=False)
        return self._spark.session.table(view)

    def paths(self, batches: Iterable[Batch]) -> list[str]:
        """Return the paths of segments of the log."""
        return [str(self._log_folder / batch.path) for batch in batches]

    def is_carried(self, port: str) -> bool:
        """Return whether the batches of a port are rows of a query, not segments of the log."""
        return port in self._index

    def carried_paths(self, batches: Iterable[Batch]) -> list[str]:
        """Return the paths of carried batches."""
        return [str(self._carry_folder / batch.path) for batch in batches]

    def stored_paths(self, batches: Iterable[tuple[str, Batch]]) -> list[str]:
        """Return the paths of batches of several ports, given with each."""
        return [
            path
            for port, batch in batches
            for path in (self.carried_paths if self.is_carried(port) else self.paths)([batch])
        ]

    def are_whole_segments(self, work: Work) -> bool:
        """Return whether ``work`` reads whole segments of the log and nothing else."""
        return self.reads_whole_segments(work) and work.state is None

    def reads_whole_segments(self, work: Work) -> bool:
        """Return whether ``work`` reads whole segments of the log, and at most a state besides."""
        return self.reads_segments(work) and not any(taken.straddles for taken in work.inputs)

    def reads_segments(self, work: Work) -> bool:
        """Return whether all rows that ``work`` reads are in segments of the log."""
        is_logged = all(p not in self._index for taken in work.inputs for p, _ in taken.batches)
        return is_logged and not work.upstream

    def reads_only(self, work: Work) -> bool:
        """Return whether each side of ``work`` reads all rows of one query of this step alone."""
        return all(
            len(taken.upstream) == 1 and not (taken.batches or taken.carries or taken.overdue)
            for taken in work.inputs
        )

    def released(self, work: Work, side: int, *, is_small: bool) -> str:
        """Return the rows that a side of ``work`` reads.

        Rows whose epoch is NULL are read when their batch is first read.
        """
        taken, schema = work.inputs[side], self._schema(work.node, side)
        names = ", ".join(quote(name) for name in schema.names)
        selects = []
        end = work.high + taken.epoch_range.last
        for part, ((is_new, low), batches) in enumerate(portions(work, taken).items()):
            logged = [b for port, b in batches if port not in self._index]
            carried = [b for port, b in batches if port in self._index]
            high = end if reaches(taken, batches, end) else ENDED
            inside = _where(taken.epoch, low, high, with_nulls=is_new)
            view = f"part{part}_{self._index[work.node.query]}_{side}"
            if logged:
                selects.append(
                    f"SELECT {names} FROM {self._logged(f'log_{view}', schema, logged)}{inside}"
                )
            if carried:
                paths = [str(self._carry_folder / batch.path) for batch in carried]
                self._read(f"carry_{view}", schema, paths, is_logged=False)
                selects.append(f"SELECT {names} FROM carry_{view}{inside}")
        for upstream in taken.upstream:
            low = work.low + taken.epoch_range.last if upstream in taken.overdue else NOTHING
            high = end if upstream in taken.carries else ENDED
            inside = _where(taken.epoch, low, high, with_nulls=True)
            selects.append(f"SELECT {names} FROM {self.view(upstream)}{inside}")
        return _subquery(selects or [_no_rows(schema)], is_small=is_small)

    def whole(self, work: Work, side: int, part: int, batches: Sequence[Batch]) -> str:
        """Return all rows of some segments of the log, in one partition.

        ``part`` numbers the views of a side.
        """
        schema = self._schema(work.node, side)
        if not batches:
            return _subquery([_no_rows(schema)], is_small=True)
        view = f"log_part{part}_{self._index[work.node.query]}_{side}"
        return _subquery([f"SELECT * FROM {self._logged(view, schema, batches)}"], is_small=True)

    def late(self, work: Work, side: int) -> str | None:
        """Return the rows that reached a side of ``work`` below its watermark; None without any."""
        taken, schema = work.inputs[side], self._schema(work.node, side)
        if taken.epoch is None or not (taken.late or taken.overdue):
            return None
        names = ", ".join(quote(name) for name in schema.names)
        sources = [self.view(upstream) for upstream in taken.overdue]
        if taken.late:
            view = f"log_late_{self._index[work.node.query]}_{side}"
            sources.append(self._logged(view, schema, [batch for _, batch in taken.late]))
        below = _where(taken.epoch, NOTHING, work.low + taken.epoch_range.last)
        selects = [f"SELECT {names} FROM {source}{below}" for source in sources]
        return _subquery(selects, is_small=True)

    def _logged(self, view: str, schema: Schema, batches: Sequence[Batch]) -> str:
        """Return the rows of segments of the log, with strings decoded."""
        self._read(view, schema, self.paths(batches), is_logged=True)
        decoded = ", ".join(_decoded(column.name, column.type) for column in schema.columns)
        return f"(SELECT {decoded} FROM {view})"

    def _read(self, view: str, schema: Schema, paths: list[str], *, is_logged: bool) -> None:
        types = ", ".join(
            f"{quote(column.name)} {_stored_type(column.type, is_logged=is_logged)}"
            for column in schema.columns
        )
        if paths:
            frame = frame_of_files(self._spark.session, types, paths)
        else:
            frame = self._spark.session.createDataFrame([], types)
        frame.createOrReplaceTempView(view)

    def _schema(self, node: HftaNode, side: int) -> Schema:
        return self._program.input_schema(node_inputs(node)[side])


def portions(work: Work, taken: ReleasedInput) -> dict[tuple[bool, Bound], list[tuple[str, Batch]]]:
    """Return the batches by whether they are read for the first time, and from which value on.

    New batches are read from the start or, where rows of the side were late, from the value at
    which rows are on time.
    """
    late_below = dict(taken.late_below)
    in_time = work.low + taken.epoch_range.last if taken.late else NOTHING
    read_below = work.read_below + taken.epoch_range.first
    portions: dict[tuple[bool, Bound], list[tuple[str, Batch]]] = {}
    for each in taken.batches:
        is_new = each not in taken.partially_read
        low = max(late_below.get(each, NOTHING), in_time if is_new else read_below)
        portions.setdefault((is_new, low), []).append(each)
    return portions


def condition(epoch: Expression, low: Bound, high: Bound, *, with_nulls: bool = False) -> str:
    """Return ``low <= epoch AND epoch < high`` without infinite bounds; "" if both are infinite.

    Rows without an epoch satisfy it only ``with_nulls``.
    """
    text = to_sql(epoch, column_leaf)
    tests = []
    if low != NOTHING:
        tests.append(f"{text} >= {_literal(low, epoch)}")
    if high != ENDED:
        tests.append(f"{text} < {_literal(high, epoch)}")
    both = " AND ".join(tests)
    return f"({both} OR {text} IS NULL)" if tests and with_nulls and epoch.is_nullable else both


def _literal(bound: Bound, epoch: Expression) -> str:
    # With +inf as the low end no row is inside.
    return "NULL" if bound in (ENDED, NOTHING) else to_sql(Literal(bound, epoch.type), column_leaf)


def _where(epoch: Expression | None, low: Bound, high: Bound, *, with_nulls: bool = False) -> str:
    inside = "" if epoch is None else condition(epoch, low, high, with_nulls=with_nulls)
    return f" WHERE {inside}" if inside else ""


def reaches(taken: ReleasedInput, batches: Sequence[tuple[str, Batch]], high: Bound) -> bool:
    """Return whether some batch has rows from ``high`` on."""
    epoch = taken.epoch
    return epoch is not None and any(batch_span(batch, epoch)[1] >= high for _, batch in batches)


def _subquery(selects: Sequence[str], *, is_small: bool) -> str:
    """Return the union of ``selects``; a small one in one partition, which needs no exchange."""
    union = " UNION ALL ".join(selects)
    return f"(SELECT /*+ COALESCE(1) */ * FROM ({union}))" if is_small else f"({union})"


def _no_rows(schema: Schema) -> str:
    columns = ", ".join(
        f"cast(NULL AS {SPARK_TYPES[column.type]}) AS {quote(column.name)}"
        for column in schema.columns
    )
    return f"SELECT {columns} WHERE false"


def _stored_type(kind: GsqlType, *, is_logged: bool) -> str:
    """Return the Spark type as which a column is read; the log holds strings as plain bytes."""
    return "BINARY" if is_logged and kind is GsqlType.STRING else SPARK_TYPES[kind]


def _decoded(name: str, kind: GsqlType) -> str:
    column = quote(name)
    if kind is GsqlType.STRING:
        return f"decode({column}, 'ISO-8859-1') AS {column}"
    return column
