"""The chains of a step that are worth running in partitions, and the tasks that run them.

A step of ordinary size runs as if there were no partitions: its tasks each have some epochs. A
single epoch of many rows would keep one task busy while other cores are idle. The operators that
read it run as chains (``queries/plan/partitioning/chains.py``), each task with some partitions of
all epochs.
"""

from __future__ import annotations

import itertools
from dataclasses import field
from typing import TYPE_CHECKING

from gscope.engine.spark.partitions import limits
from gscope.engine.spark.partitions.chain_operators import (
    chain_operator,
    sub_operator,
    super_node,
)
from gscope.engine.spark.partitions.chain_task import (
    ChainFile,
    ChainSide,
    ChainStep,
    ChainTask,
)
from gscope.engine.spark.partitions.partition_reader import PartitionedFile, Piece, portions
from gscope.engine.spark.sql.inputs import portions as released_portions
from gscope.engine.spark.sql.inputs import reaches
from gscope.engine.spark.staging.outputs import kept_from
from gscope.engine.spark.tasks.join_task import of_one_side
from gscope.engine.spark.tasks.released_rows import UNKNOWN, between
from gscope.engine.watermarks.bounds import ENDED, NOTHING
from gscope.engine.watermarks.release_size import group_by_epochs, weight
from gscope.queries.plan.partitioning.chains import partitioned_plan
from gscope.queries.plan.program import (
    StreamInput,
    node_inputs,
)
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gscope.engine.operators.base import Work
    from gscope.engine.spark.partitions.chain_operators import SuperNode
    from gscope.engine.spark.partitions.chain_task import ChainOperator
    from gscope.engine.spark.sql.inputs import InputViews
    from gscope.engine.spark.staging.outputs import Outputs
    from gscope.engine.steps.steps import Step
    from gscope.engine.watermarks.bounds import Bound
    from gscope.engine.watermarks.release import ReleasedInput
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.partitioning.chains import Chain, PartitionedPlan
    from gscope.queries.plan.program import HftaNode, Input, Program
    from gscope.queries.streams.messages import Batch

Carried = tuple[str, int, str]
"""An operator, the number of its side, and the operator whose rows wait there for a later step."""


@dataclass(frozen=True, slots=True)
class StepChain:
    """A chain as a step runs it.

    Attributes:
        tasks: its tasks.
        rows: the most rows that one of them reads.
        folders: the folder of the rows of each operator that are written.
        paths: of those that are delivered, the folder's path as a staged output.
        queries: the operators whose rows it computes.
        supers: the super nodes of its sub nodes.
        carries: the folder of the rows that wait for a later step, for each side.
    """

    tasks: tuple[ChainTask, ...]
    rows: int
    folders: dict[str, Path]
    paths: dict[str, str]
    queries: tuple[str, ...]
    supers: tuple[SuperNode, ...]
    carries: dict[Carried, Path]


@dataclass(slots=True)
class _Fused:
    """The works of a step that a chain runs together."""

    chain: Chain
    operators: dict[str, ChainOperator] = field(default_factory=dict)
    sides: dict[str, tuple[ChainSide, ...]] = field(default_factory=dict)
    works: dict[str, Work] = field(default_factory=dict)
    subs: set[str] = field(default_factory=set)

    @property
    def queries(self) -> list[str]:
        """The operators whose rows are complete."""
        return [query for query in self.works if query not in self.subs]


class ChainPlanner:
    """The chains of each step of one program.

    Args:
        program: the program.
        inputs: the rows that operators read.
        outputs: the places where rows are written.
        results: for each result, the query whose rows it consists of.
        cores: returns how many tasks run at a time.
    """

    def __init__(
        self,
        program: Program,
        inputs: InputViews,
        outputs: Outputs,
        results: Mapping[str, str],
        cores: Callable[[], int],
    ) -> None:
        self._program = program
        self._inputs = inputs
        self._outputs = outputs
        self._results = results
        self._cores = cores
        self._planned: PartitionedPlan | None = None

    def chains(self, step: Step) -> list[StepChain]:
        """Return the chains of ``step`` with an epoch for several tasks.

        Such an epoch is so large that several tasks should share it.
        """
        if self._planned is None:
            self._planned = partitioned_plan(self._program, self._can_run)
        found = []
        for chain in self._planned.chains:
            fused = self._fused(chain, step)
            if fused.works and _is_worth_dividing(fused):
                found.append(self._tasks(fused, step))
        return found

    def _can_run(self, node: HftaNode) -> bool:
        return chain_operator(self._program, node) is not None

    def _fused(self, chain: Chain, step: Step) -> _Fused:
        """Return the works of ``step`` that ``chain`` can run.

        It depends on what each reads in this step.
        """
        left_out: set[str] = set()
        while True:
            fused = self._fused_without(chain, step, left_out)
            texts = {
                query
                for query in fused.queries
                if self._program.schema(query).has_text and self._is_read(query, fused, step)
            }
            if not texts:
                return fused
            # Files of the log, of tasks and of Spark each hold texts in another way.
            left_out |= texts

    def _fused_without(self, chain: Chain, step: Step, left_out: set[str]) -> _Fused:
        fused = _Fused(chain)
        whole = {sub.query: sub.has_whole_groups for sub in chain.subs}
        for work in step.works:
            query = work.node.query
            is_sub = query in whole
            if not work.reads_rows or query in left_out or not (is_sub or query in chain.queries):
                continue
            if work.state is not None or work.makes_row or self._delivered(query) is None:
                continue
            operator = chain_operator(self._program, work.node, work)
            if operator is not None and is_sub:
                operator = sub_operator(operator, has_whole_groups=whole[query])
            sides = self._sides(work, fused)
            if operator is None or sides is None:
                continue
            fused.works[query], fused.operators[query], fused.sides[query] = work, operator, sides
            if is_sub:
                fused.subs.add(query)
        return fused

    def _delivered(self, query: str) -> tuple[str, ...] | None:
        """Return the result that ``query`` is, if any; None if it is several."""
        results = tuple(result for result, source in self._results.items() if source == query)
        return results if len(results) < 2 else None

    def _is_read(self, query: str, fused: _Fused, step: Step) -> bool:
        """Return whether rows of ``query`` are read from files."""
        return any(
            query in taken.carries
            or (query in taken.upstream and work.node.query not in fused.works)
            for work in step.works
            for taken in work.inputs
        )

    def _sides(self, work: Work, fused: _Fused) -> tuple[ChainSide, ...] | None:
        """Return what the sides of ``work`` read; None if a task cannot read it."""
        sides = []
        for taken, source in zip(work.inputs, node_inputs(work.node), strict=True):
            side = self._side(work, taken, source, fused)
            if side is None:
                return None
            sides.append(side)
        return tuple(sides)

    def _side(
        self, work: Work, taken: ReleasedInput, source: Input, fused: _Fused
    ) -> ChainSide | None:
        if taken.trim is not None or taken.overdue:
            return None
        if any(query not in fused.queries for query in taken.upstream):
            return None
        carried = {port for port, _ in taken.batches if self._inputs.is_carried(port)}
        if any(self._program.schema(port).has_text for port in carried):
            return None
        if _weights(batch for _, batch in taken.batches) > taken.rows:
            return None  # long rows
        end = work.high + taken.epoch_range.last
        pieces = []
        for (_, low), batches in released_portions(work, taken).items():
            high = end if reaches(taken, batches, end) else ENDED
            within = _condition(taken.epoch, low, high)
            by_source: dict[bool, list[Batch]] = {}
            for port, batch in batches:
                by_source.setdefault(self._inputs.is_carried(port), []).append(batch)
            for is_carried, found in by_source.items():
                piece = self._piece(source, fused.chain, found, within, is_carried=is_carried)
                if piece is None:
                    return None
                pieces.append(piece)
        upstream = []
        for query in taken.upstream:
            high = end if query in taken.carries else ENDED
            upstream.append((query, _condition(taken.epoch, NOTHING, high)))
        conditions = [*(piece.within for piece in pieces), *(each for _, each in upstream)]
        return None if UNKNOWN in conditions else ChainSide(tuple(pieces), tuple(upstream))

    def _piece(
        self,
        source: Input,
        chain: Chain,
        batches: Sequence[Batch],
        within: Expression | None,
        *,
        is_carried: bool,
    ) -> Piece | None:
        """Return the rows of some batches; None if they cannot be divided."""
        paths = self._inputs.carried_paths(batches) if is_carried else self._inputs.paths(batches)
        if chain.of_streams is None:
            # Whole files are partitions.
            files = tuple(PartitionedFile(path, owner=n) for n, path in enumerate(paths))
            return Piece(files, (), within)
        if isinstance(source, StreamInput):
            members = chain.of_streams[source.lfta]
        elif source.query in chain.of_queries:
            members = chain.of_queries[source.query]
        else:
            return None
        is_labelled = chain.is_labelled or is_carried
        files = tuple(
            PartitionedFile(path, _labels(batch) if is_labelled else None)
            for path, batch in zip(paths, batches, strict=True)
        )
        return Piece(files, members, within)

    def _tasks(self, fused: _Fused, step: Step) -> StepChain:
        """Return the tasks of works that run together."""
        partitions = self._partitions
        rows = sum(work.rows for work in fused.works.values())
        cuts = _cuts(fused, partitions)
        count = min(len(cuts) - 1, self._cores(), max(1, 2 * rows // limits.SPLIT_ROWS))
        folders: dict[str, Path] = {}
        paths: dict[str, str] = {}
        files: dict[str, list[ChainFile]] = {query: [] for query in fused.works}
        for query in fused.works:
            temporal = _temporal(self._program.schema(query))
            results = () if query in fused.subs else self._delivered(query)
            if results:
                paths[query], folders[query] = self._outputs.stage(
                    results[0], step.number, ".parquet"
                )
            elif query in fused.subs:
                folders[query] = self._outputs.groups(query, step.number, "subs")
            elif self._is_read_outside(query, fused, step):
                folders[query] = self._outputs.groups(query, step.number)
            if query in folders:
                named = () if query in fused.subs else temporal
                files[query].append(ChainFile(folders[query], named))
        carries: dict[Carried, Path] = {}
        for key, upstream, within in self._carries(fused, step):
            carries[key] = self._outputs.carry_folder(*key, step.number)
            temporal = _temporal(self._program.schema(upstream))
            files[upstream].append(ChainFile(carries[key], temporal, within))
        for folder in (*folders.values(), *carries.values()):
            folder.mkdir()
        steps = tuple(
            ChainStep(query, fused.operators[query], fused.sides[query], tuple(files[query]))
            for query in fused.works
        )
        ends = [(len(cuts) - 1) * number // count for number in range(count + 1)]
        tasks = tuple(
            ChainTask(
                steps,
                partitions,
                portions(cuts[first : end + 1], rows // count, limits.PORTION_ROWS),
                number,
            )
            for number, (first, end) in enumerate(itertools.pairwise(ends))
        )
        supers = tuple(
            super_node(fused.works[query], fused.operators[query], folders.pop(query))
            for query in fused.works
            if query in fused.subs
        )
        return StepChain(
            tasks, rows // count, folders, paths, tuple(fused.queries), supers, carries
        )

    def _is_read_outside(self, query: str, fused: _Fused, step: Step) -> bool:
        """Return whether operators that the chain does not run read rows of ``query``."""
        handled = {key for key, *_ in self._carries(fused, step)}
        return any(
            (query in taken.upstream and work.node.query not in fused.works)
            or (query in taken.carries and (work.node.query, side, query) not in handled)
            for work in step.works
            for side, taken in enumerate(work.inputs)
        )

    def _carries(
        self, fused: _Fused, step: Step
    ) -> Iterator[tuple[Carried, str, Expression | None]]:
        """Yield the sides where rows of the chain wait, with the condition that they satisfy."""
        for work in step.works:
            for side, taken in enumerate(work.inputs):
                for upstream in taken.carries:
                    within = _condition(taken.epoch, kept_from(work, taken, upstream), ENDED)
                    if upstream in fused.queries and within is not UNKNOWN:
                        yield (work.node.query, side, upstream), upstream, within

    @property
    def _partitions(self) -> int:
        partitioning = self._program.partitioning
        return 1 if partitioning is None else partitioning.partitions


def _condition(epoch: Expression | None, low: Bound, high: Bound) -> Expression | None:
    """Return ``low <= epoch < high``; None for all rows, ``UNKNOWN`` if tasks cannot test it."""
    if epoch is None or (low, high) == (NOTHING, ENDED):
        return None
    return between(of_one_side(epoch), low, high)


def _cuts(fused: _Fused, partitions: int) -> list[int]:
    """Return where row groups of the works' batches begin and end.

    Without labels these are all partitions.
    """
    found = {
        bound
        for work in fused.works.values()
        for taken in work.inputs
        for _, batch in taken.batches
        for group in batch.row_groups
        for bound in (group.first, group.end)
    }
    return (
        sorted({0, partitions, *found}) if found - {0, partitions} else list(range(partitions + 1))
    )


def _labels(batch: Batch) -> tuple[tuple[int, int], ...] | None:
    return tuple((group.first, group.end) for group in batch.row_groups) or None


def _temporal(schema: Schema) -> tuple[str, ...]:
    return tuple(column.name for column in schema.temporal)


def _weights(batches: Iterable[Batch]) -> int:
    return sum(map(weight, batches))


def _is_worth_dividing(fused: _Fused) -> bool:
    """Return whether an epoch is large, and its partitions can be read apart."""
    if _largest_epoch(fused.works.values()) < limits.SPLIT_ROWS:
        return False
    if fused.chain.of_streams is None:
        return True
    batches = [b for work in fused.works.values() for t in work.inputs for _, b in t.batches]
    labelled = sum(batch.rows for batch in batches if _labels(batch))
    return labelled >= limits.LABELLED_SHARE * sum(batch.rows for batch in batches)


def _largest_epoch(works: Iterable[Work]) -> int:
    """Return the rows of the largest group of batches that share epochs."""
    largest = 0
    for work in works:
        for group in group_by_epochs(work.inputs):
            largest = max(largest, sum(batch.rows for side in group for batch in side))
    return largest
