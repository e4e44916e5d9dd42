"""The data plane of a step: released rows become DataFrames, answers become files.

One plan for each result of the step. A query read in several places is cached for the step.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gscope.engine.commits import Output
from gscope.engine.operators import aggregation, merge, selection
from gscope.engine.release import by_epochs
from gscope.engine.spark.expressions import SPARK_TYPES, column_leaf, quote, to_sql
from gscope.engine.spark.merge_partials import (
    MAX_TASK_ROWS,
    PartialMerge,
    plain_merge,
    run_merge,
)
from gscope.engine.spark.udf import register_functions
from gscope.queries.catalog.types import GsqlType
from gscope.queries.plan.program import (
    AggregationNode,
    HftaNode,
    MergeNode,
    Program,
    QueryInput,
    SelectionNode,
    StreamInput,
)
from gscope.queries.streams.messages import Batch, Extent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from gscope.engine.commits import CommitLog
    from gscope.engine.operators.base import Work
    from gscope.engine.release import Bound
    from gscope.engine.steps import Step
    from gscope.queries.catalog.schema import Schema
    from gscope.queries.plan.expressions import Expression

SMALL_STEP_ROWS = 200_000
"""Up to here one partition without an exchange is faster than two with one."""

_JOBS_AT_ONCE = 4
_PLAIN_PARQUET = {"compression": "none", "parquet.enable.dictionary": "false"}


class Evaluator:
    """Evaluates steps of one program on one Spark session.

    Args:
        log_folder: where the batches' segment paths start.
        commits: says where outputs are staged and carries are kept.
    """

    def __init__(
        self, session: SparkSession, program: Program, log_folder: Path, commits: CommitLog
    ) -> None:
        self._session = session
        self._program = program
        self._log_folder = log_folder
        self._commits = commits
        self._index = {node.query: index for index, node in enumerate(program.nodes)}
        self._results = {
            query: source.query
            for query, source in program.results
            if isinstance(source, QueryInput)
        }
        register_functions(session, (e for node in program.nodes for e in _expressions(node)))

    def run(self, step: Step) -> tuple[list[Output], list[tuple[str, str, Batch]]]:
        """Evaluate ``step``.

        Returns:
            The staged outputs, and the carried rows as (reader, upstream query, batch).
        """
        frames: dict[str, DataFrame] = {}
        sizes: dict[str, int] = {}
        merged: list[Output] = []
        uses = self._uses(step)
        for work in step.works:
            if not work.reads_rows:
                continue
            query = work.node.query
            sizes[query] = work.rows + sum(sizes[name] for name in work.upstream)
            merge = self._plain_merge(work, uses)
            if merge is not None:
                merged.append(self._merge(work, merge, step.number))
                continue
            frame = self._session.sql(self._lower(work, is_small=_is_small(sizes[query])))
            if uses.get(query, 0) > 1:
                frame = frame.cache()
            frame.createOrReplaceTempView(self._view(query))
            frames[query] = frame
        try:
            with ThreadPoolExecutor(_JOBS_AT_ONCE) as pool:
                outputs = [
                    pool.submit(
                        self._write_output, result, step.number, frames[query], sizes[query]
                    )
                    for result, query in self._results.items()
                    if query in frames
                ]
                carries = [
                    pool.submit(self._write_carry, work, upstream, step.number, frames[upstream])
                    for work in step.works
                    for upstream in work.carries
                ]
                written = [output for f in outputs if (output := f.result()) is not None]
                carried = [carry for f in carries if (carry := f.result()) is not None]
        finally:
            for query, frame in frames.items():
                if uses.get(query, 0) > 1:
                    frame.unpersist()
        return merged + written, carried

    def _plain_merge(self, work: Work, uses: dict[str, int]) -> PartialMerge | None:
        """How to merge a large release without Spark's own aggregation, None if it has to be that."""
        node = work.node
        if not isinstance(node, AggregationNode) or _is_small(work.rows):
            return None
        is_result = node.query in self._results.values() and uses[node.query] == 1
        if not is_result or not self._is_from_log(work) or work.epoch is None:
            return None
        largest = max(
            sum(batch.rows for batch in part) for part in by_epochs(work.batches, work.epoch)
        )
        return plain_merge(node) if largest <= MAX_TASK_ROWS else None

    def _merge(self, work: Work, merge: PartialMerge, step: int) -> Output:
        assert work.epoch is not None
        result = next(r for r, query in self._results.items() if query == work.node.query)
        path = f"{result}/{step:012d}.parquet"
        staged = self._commits.staged(path)
        staged.parent.mkdir(exist_ok=True)
        parts = [
            [str(self._log_folder / batch.path) for batch in part]
            for part in by_epochs(work.batches, work.epoch)
        ]
        return Output(result, path, run_merge(self._session, merge, parts, staged))

    def _uses(self, step: Step) -> dict[str, int]:
        """How often each query's rows are read in the step."""
        uses: dict[str, int] = {}
        readers = [name for work in step.works for name in (*work.upstream, *work.carries)]
        for query in [*readers, *self._results.values()]:
            uses[query] = uses.get(query, 0) + 1
        return uses

    def _lower(self, work: Work, *, is_small: bool) -> str:
        if isinstance(work.node, AggregationNode) and not is_small and self._is_from_log(work):
            return self._lower_by_epochs(work, work.node)
        source = " UNION ALL ".join(self._sources(work, is_small=is_small))
        match work.node:
            case AggregationNode():
                return aggregation.lower(work.node, f"({source})")
            case SelectionNode():
                return selection.lower(work.node, f"({source})")
            case MergeNode():
                return merge.lower(work.node, f"({source})")

    def _is_from_log(self, work: Work) -> bool:
        """Whether every row read is in a segment of the log that is read as a whole."""
        is_logged = all(port not in self._index for port, _ in work.batches)
        return is_logged and not work.upstream and not work.straddles

    def _lower_by_epochs(self, work: Work, node: AggregationNode) -> str:
        """A large aggregation as a union of one for each range of epochs.

        Groups of different epochs never meet, so no range needs an exchange, and the ranges are tasks
        that run side by side.
        """
        assert work.epoch is not None
        schema = self._input_schema(node)
        parts = []
        for number, batches in enumerate(by_epochs(work.batches, work.epoch)):
            view = f"log_{self._index[node.query]}_{number}"
            source = self._logged(view, schema, batches, is_small=True)
            parts.append(aggregation.lower(node, f"({source})"))
        return " UNION ALL ".join(parts)

    def _logged(
        self, view: str, schema: Schema, batches: Sequence[Batch], *, is_small: bool
    ) -> str:
        """A SELECT of the rows of log segments, strings decoded."""
        paths = [str(self._log_folder / batch.path) for batch in batches]
        self._read(view, schema, paths, is_small)
        decoded = ", ".join(_decoded(column.name, column.type) for column in schema.columns)
        return f"SELECT {decoded} FROM {view}"

    def _sources(self, work: Work, *, is_small: bool) -> Iterator[str]:
        """A SELECT for each kind of input of ``work``: log segments, carries, upstream rows."""
        schema = self._input_schema(work.node)
        names = ", ".join(quote(name) for name in schema.names)
        logged = [b for port, b in work.batches if port not in self._index]
        carried = [b for port, b in work.batches if port in self._index]
        inside = _between(work, work.low, work.high) if work.straddles else ""
        if logged:
            view = f"log_{self._index[work.node.query]}"
            rows = self._logged(view, schema, logged, is_small=is_small)
            yield f"SELECT {names} FROM ({rows}){inside}"
        if carried:
            paths = [str(self._commits.carry / batch.path) for batch in carried]
            view = self._read(f"carry_{self._index[work.node.query]}", schema, paths, is_small)
            yield f"SELECT {names} FROM {view}{inside}"
        for upstream in work.upstream:
            below = _between(work, -math.inf, work.high) if upstream in work.carries else ""
            yield f"SELECT {names} FROM {self._view(upstream)}{below}"

    def _read(self, view: str, schema: Schema, paths: list[str], is_small: bool) -> str:
        is_logged = view.startswith("log_")
        types = ", ".join(
            f"{quote(column.name)} {_stored_type(column.type, is_logged=is_logged)}"
            for column in schema.columns
        )
        frame = self._session.read.schema(types).parquet(*paths)
        (frame.coalesce(1) if is_small else frame).createOrReplaceTempView(view)
        return view

    def _write_output(self, result: str, step: int, frame: DataFrame, rows: int) -> Output | None:
        order = [quote(column.name) for column in self._program.schema(result).temporal]
        is_small = _is_small(rows)
        path = f"{result}/{step:012d}{'.arrow' if is_small else '.parquet'}"
        staged = self._commits.staged(path)
        staged.parent.mkdir(exist_ok=True)
        if is_small:
            table = (frame.orderBy(*order) if order else frame).toArrow()
            if table.num_rows == 0:
                return None
            with pa.ipc.new_file(staged, table.schema) as writer:
                writer.write_table(table)
            return Output(result, path, table.num_rows)
        # read once, soon, from the page cache: compression and dictionaries would only cost
        frame.write.options(**_PLAIN_PARQUET).parquet(str(staged))
        count = sum(pq.read_metadata(file).num_rows for file in staged.glob("*.parquet"))
        return Output(result, path, count)

    def _write_carry(
        self, work: Work, upstream: str, step: int, frame: DataFrame
    ) -> tuple[str, str, Batch] | None:
        assert work.epoch is not None
        query = work.node.query
        name = f"{step:012d}-{self._index[query]}-{self._index[upstream]}"
        folder = self._commits.carry / name
        rest = frame.where(_between(work, work.high, math.inf).removeprefix(" WHERE "))
        rest.coalesce(1).write.options(**_PLAIN_PARQUET).parquet(str(folder))
        table = pq.read_table(
            folder, columns=[c.name for c in self._program.schema(upstream).temporal]
        )
        if table.num_rows == 0:
            return None
        extents = []
        for column in table.column_names:
            bounds = pc.min_max(table[column]).as_py()
            if bounds["min"] is not None:
                extents.append(Extent(column, bounds["min"], bounds["max"]))
        size = sum(file.stat().st_size for file in folder.glob("*.parquet"))
        return query, upstream, Batch(upstream, step, name, table.num_rows, size, tuple(extents))

    def _input_schema(self, node: HftaNode) -> Schema:
        source = node.inputs[0] if isinstance(node, MergeNode) else node.input
        if isinstance(source, StreamInput):
            return self._program.lfta(source.lfta).stream_schema
        return self._program.schema(source.query)

    def _view(self, query: str) -> str:
        return f"query_{self._index[query]}"


def _expressions(node: HftaNode) -> Iterator[Expression]:
    if isinstance(node, MergeNode):
        return
    yield from (column.expression for column in node.columns)
    if node.predicate is not None:
        yield node.predicate
    if isinstance(node, AggregationNode):
        yield from (key.expression for key in node.keys)
        yield from (a for aggregate in node.aggregates for a in aggregate.arguments)
        if node.having is not None:
            yield node.having


def _is_small(rows: int) -> bool:
    return rows <= SMALL_STEP_ROWS


def _between(work: Work, low: Bound, high: Bound) -> str:
    """`` WHERE low <= epoch AND epoch < high`` with what is infinite left out."""
    assert work.epoch is not None
    epoch = to_sql(work.epoch, column_leaf)
    tests = []
    if math.isfinite(low):
        tests.append(f"{epoch} >= {int(low)}L")
    if math.isfinite(high):
        tests.append(f"{epoch} < {int(high)}L")
    return f" WHERE {' AND '.join(tests)}" if tests else ""


def _stored_type(kind: GsqlType, *, is_logged: bool) -> str:
    """The Spark type a column is read as; the log holds strings as plain bytes."""
    return "BINARY" if is_logged and kind is GsqlType.STRING else SPARK_TYPES[kind]


def _decoded(name: str, kind: GsqlType) -> str:
    column = quote(name)
    if kind is GsqlType.STRING:
        return f"decode({column}, 'ISO-8859-1') AS {column}"
    return column
