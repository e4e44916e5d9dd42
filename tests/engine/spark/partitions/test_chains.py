"""Operators that run in partitions give the rows that they give without, and those of plain loops.

Tasks run in this process, so that many divisions are tried: Spark only distributes them.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.divided_steps import divided_steps
from tests.support.long_form import pairs

from gscope.engine.spark import task_planner
from gscope.engine.spark.partitions import limits
from gscope.engine.spark.partitions.chain_task import ChainTask
from gscope.engine.spark.sql.inputs import InputViews
from gscope.engine.spark.staging.outputs import Outputs
from gscope.engine.spark.task_planner import TaskStage
from gscope.engine.spark.tasks.here import TasksHere
from gscope.engine.steps.steps import Evaluation, Steps
from gscope.engine.storage.commits import Commit, CommitLog
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.partitioning.value_columns import partitions_of_rows
from gscope.queries.plan.program import QueryInput
from gscope.queries.streams.messages import (
    Batch,
    EndOfStream,
    Extent,
    Heartbeat,
    Punctuation,
    RowGroup,
)

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.engine.steps.steps import Step
    from gscope.queries.plan.program import Lfta, Program
    from gscope.queries.streams.messages import Message

EPOCHS = 3
ADDRESSES = [bytes(10) + b"\xff\xff\x0a\x00\x00" + bytes([n]) for n in range(9)]

FLOW_PAIRS = """
DEFINE { query_name 'flows'; }
SELECT tb, srcIP, destIP, count(*) as cnt FROM a.TCP GROUP BY time/60 as tb, srcIP, destIP;
DEFINE { query_name 'heavy_flows'; }
SELECT tb, srcIP, max(cnt) as max_cnt FROM flows GROUP BY tb, srcIP;
DEFINE { query_name 'flow_pairs'; }
SELECT S1.tb, S1.srcIP, S1.max_cnt, S2.max_cnt FROM heavy_flows S1, heavy_flows S2
WHERE S1.srcIP = S2.srcIP and S1.tb = S2.tb+1"""
LINKS = "\n".join(
    f"Query {name}: SELECT tb, srcIP, destIP, count(*) as cnt FROM {link}.TCP"
    " GROUP BY time/60 as tb, srcIP, destIP;"
    for name, link in (("there", "a"), ("back", "b"))
)


def program_of(text: str, partitions: int) -> Program:
    context = CompileContext(("a", "b"), partitions=partitions)
    return compile_queries([QueryText(text, "q.gsql")], context).program


def partial_rows(lfta: Lfta, chance: random.Random, epoch: int, count: int) -> pa.Table:
    """Partial tuples of an epoch as an LFTA evicts them: few groups, several times each."""
    columns: dict[str, pa.Array] = {}
    for column in lfta.stream_schema.columns:
        values: list[Any] = [chance.randrange(1, 40) for _ in range(count)]
        kind = pa.int64()
        if column.ordering.is_temporal:
            values = [epoch] * count
        elif column.type is GsqlType.IP:
            values, kind = [chance.choice(ADDRESSES) for _ in range(count)], pa.binary(16)
        elif any(key.name == column.name for key in lfta.keys):
            values, kind = [chance.randrange(5) for _ in range(count)], pa.int32()
        columns[column.name] = pa.array(values, kind)
    return pa.table(columns)


def segment(
    lfta: Lfta, table: pa.Table, path: Path, labels: str, partitions: int
) -> tuple[RowGroup, ...]:
    """Write rows, with a row group for each partition, or for ranges of them, or unlabelled.

    With ``mixed``, the first rows are in a group of any partitions, as in segments of the log.
    """
    if labels == "none" or lfta.partitioning is None:
        pq.write_table(table, path)
        return ()
    found = partitions_of_rows(table, lfta.partitioning.members, partitions)
    wide = 2 if labels == "ranges" else 1
    groups = []
    with pq.ParquetWriter(path, table.schema) as writer:
        if labels == "mixed":
            undivided, table, found = table.slice(0, 60), table.slice(60), found[60:]
            writer.write_table(undivided)
            groups.append(RowGroup(0, partitions, undivided.num_rows, undivided.nbytes))
        for first in range(0, partitions, wide):
            end = min(first + wide, partitions)
            rows = table.filter(pa.array((found >= first) & (found < end)))
            if rows.num_rows:
                writer.write_table(rows)
                groups.append(RowGroup(first, end, rows.num_rows, rows.nbytes))
    return tuple(groups)


@dataclass
class Chained:
    """What one life of a job with partitions has answered, and what ran."""

    folder: Path
    program: Program
    labels: str = "each"
    cores: int = 2
    answers: dict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))
    tasks: list[ChainTask] = field(default_factory=list)
    counts: Any = None
    rows: dict[str, list[pa.Table]] = field(default_factory=dict)
    left_to_sql: set[str] = field(default_factory=set)

    @property
    def partitions(self) -> int:
        found = self.program.partitioning
        return 1 if found is None else found.partitions

    def messages(self, seed: int = 1, count: int = 150) -> list[Message]:
        """Segments of all epochs, several each, and the end of each stream."""
        chance = random.Random(seed)
        (self.folder / "log").mkdir(parents=True)
        found: list[Message] = []
        for lfta in self.program.lftas:
            for stream in lfta.streams:
                sequence = 0
                for epoch in range(100, 100 + EPOCHS):
                    for _ in range(2):
                        table = partial_rows(lfta, chance, epoch, count)
                        self.rows.setdefault(stream.split("@")[1], []).append(table)
                        path = self.folder / "log" / f"{stream}-{sequence}.parquet"
                        groups = segment(lfta, table, path, self.labels, self.partitions)
                        extents = tuple(
                            Extent(c.name, epoch, epoch) for c in lfta.stream_schema.temporal
                        )
                        found.append(
                            Batch(stream, sequence, path.name, count, 9000, extents, groups)
                        )
                        sequence += 1
                    bounds = tuple(
                        Punctuation(c.name, epoch + 1) for c in lfta.stream_schema.temporal
                    )
                    found.append(Heartbeat(stream, sequence, epoch, 0, bounds))
                    sequence += 1
                found.append(EndOfStream(stream, sequence))
        return found

    def run(
        self,
        messages: list[Message],
        *,
        epochs_at_a_time: bool = False,
        is_in_portions: bool = False,
    ) -> Chained:
        """Evaluate all steps; with ``epochs_at_a_time``, one epoch in each."""
        commits = CommitLog(self.folder / "job")
        steps = Steps(self.program)
        results = {
            query: source.query
            for query, source in self.program.results
            if isinstance(source, QueryInput)
        }
        spark: Any = SimpleNamespace(cores=self.cores, is_ready=True, session=None)
        inputs = InputViews(spark, self.program, self.folder / "log", commits.carry)
        outputs = Outputs(self.program, commits)
        stage = TaskStage(spark, self.program, inputs, outputs, results, TasksHere())
        with (
            mock.patch.object(task_planner, "run_tasks", self._run_here),
            mock.patch(
                "gscope.engine.watermarks.release_size.MAX_STEP_ROWS",
                1 if epochs_at_a_time else 500_000,
            ),
        ):
            # The first portion ends between two epochs.
            middle = 2 * len(messages) // 3 if is_in_portions else 0
            for portion in (messages[:middle], messages[middle:]):
                steps.on_messages(portion)
                while (step := steps.next()) is not None:
                    self._evaluate(step, steps, stage, commits)
        self.counts = stage.counts
        return self

    def _run_here(self, _session: Any, tasks: list[Any]) -> list[Any]:
        self.tasks += [task for task in tasks if isinstance(task, ChainTask)]
        return [task.run("attempt") for task in tasks]

    def _evaluate(self, step: Step, steps: Steps, stage: TaskStage, commits: CommitLog) -> None:
        uses: Counter[str] = Counter()
        for work in step.works:
            for taken in work.inputs:
                uses.update([*taken.upstream, *taken.carries])
        uses.update(
            source.query for _, source in self.program.results if isinstance(source, QueryInput)
        )
        done = stage.run(step, uses)
        self.left_to_sql |= {
            w.node.query for w in step.works if w.reads_rows and w.node.query not in done.results
        }
        outputs = tuple(
            output
            for query, source in self.program.results
            if isinstance(source, QueryInput)
            and source.query in done.results
            and (output := done.results[source.query].output(query)) is not None
        )
        carries = tuple(each for found in done.carries.values() for each in found)
        steps.on_evaluated(Evaluation(outputs=outputs, carries=carries))
        commits.write(Commit(step.number, steps.snapshot(), outputs))
        commits.publish(outputs)
        commits.drop_carry(steps.carried())
        for output in outputs:
            for name in output.files:
                table = pq.read_table(commits.outputs / output.path / name)
                self.answers[output.query] += zip(
                    *(table[c].to_pylist() for c in self.program.schema(output.query).names),
                    strict=True,
                )


def answers(folder: Path, text: str, partitions: int, **settings: Any) -> Chained:
    """What a query set answers in partitions; everything must run without SQL."""
    at_a_time = settings.pop("epochs_at_a_time", False)
    made = Chained(folder, program_of(text, partitions), **settings)
    with divided_steps(portion_rows=60):
        made.run(made.messages(), epochs_at_a_time=at_a_time)
    return made


def ordered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


def same(one: Chained, other: Chained) -> None:
    assert {q: ordered(rows) for q, rows in one.answers.items() if rows} == {
        q: ordered(rows) for q, rows in other.answers.items() if rows
    }


DIVISIONS = [(8, "mixed", 3), (3, "each", 2), (3, "none", 3), (8, "ranges", 2), (64, "each", 3)]

QUERIES = {
    "having": "SELECT tb, srcIP, destIP, count(*) as cnt, sum(len) as bytes, avg(len) as mean"
    " FROM a.TCP GROUP BY time/60 as tb, srcIP, destIP HAVING count(*) > 60",
    "distinct": "SELECT tb, srcIP, count_distinct(destPort) as ports, count(*) as c FROM a.TCP"
    " GROUP BY time/60 as tb, srcIP HAVING count_distinct(destPort) > 3",
    "inner join": f"{LINKS} Query j: SELECT there.tb, there.srcIP, there.cnt, back.cnt FROM there,"
    " back WHERE there.tb = back.tb and there.srcIP = back.destIP and there.destIP = back.srcIP",
    "left join": f"{LINKS} Query j: SELECT l.tb, l.srcIP, l.cnt, r.cnt FROM there l LEFT OUTER JOIN"
    " back r ON l.tb = r.tb and l.srcIP = r.srcIP and l.destIP = r.destIP and l.cnt < r.cnt",
    "full join": f"{LINKS} Query j: SELECT l.tb, r.tb, l.srcIP, r.srcIP, l.cnt, r.cnt OUTER_JOIN"
    " FROM there l, back r WHERE l.tb = r.tb and l.srcIP = r.srcIP and l.destIP = r.destIP"
    " and l.cnt < r.cnt",
    "split": f"{LINKS} Query all_of_it: SELECT tb, count(*) as flows, sum(cnt) as packets,"
    " max(cnt) as most, count_distinct(srcIP) as hosts FROM there GROUP BY tb HAVING count(*) > 1;"
    " Query by_dest: SELECT tb, destIP, min(cnt) as least FROM there GROUP BY tb, destIP",
    "limit": "SELECT tb, srcIP, destIP, count(*) as cnt FROM a.TCP GROUP BY time/60 as tb, srcIP,"
    " destIP ORDER BY cnt DESC LIMIT 4",
    "split limit": f"{LINKS} Query best: SELECT tb, destIP, sum(cnt) as c FROM there GROUP BY tb,"
    " destIP ORDER BY c DESC LIMIT 2",
    "own rows": "DEFINE { query_name 'f'; } SELECT tb, srcIP, destIP, count(*) as cnt FROM a.TCP"
    " GROUP BY time/60 as tb, srcIP, destIP; Query p: SELECT f.tb, f.srcIP, g.cnt FROM f, f g"
    " WHERE f.tb = g.tb and f.srcIP = g.destIP and f.destIP = g.srcIP",
}


@pytest.mark.parametrize(("name", "division"), pairs(list(QUERIES), DIVISIONS, always=0, name=str))
def test_any_division_gives_the_same_rows(
    tmp_path: Path, name: str, division: tuple[int, str, int]
) -> None:
    partitions, labels, cores = division
    whole = answers(tmp_path / "whole", QUERIES[name], 1)
    parts = answers(tmp_path / "parts", QUERIES[name], partitions, labels=labels, cores=cores)
    assert any(whole.answers.values())
    assert not whole.tasks
    assert parts.tasks
    assert whole.left_to_sql == parts.left_to_sql == set()
    same(whole, parts)
    assert whole.counts == parts.counts


def heavy_flows_by_a_plain_loop(rows: list[pa.Table]) -> dict[tuple[Any, ...], int]:
    flows: Counter[tuple[Any, ...]] = Counter()
    for table in rows:
        for row in table.to_pylist():
            flows[row["tb"], row["srcIP"], row["destIP"]] += row["count0"]
    heavy: dict[tuple[Any, ...], int] = {}
    for (tb, source, _), count in flows.items():
        heavy[tb, source] = max(count, heavy.get((tb, source), 0))
    return heavy


def flow_pairs_by_a_plain_loop(rows: list[pa.Table]) -> list[tuple[Any, ...]]:
    heavy = heavy_flows_by_a_plain_loop(rows)
    return [
        (tb, source, most, heavy[tb - 1, source])
        for (tb, source), most in heavy.items()
        if (tb - 1, source) in heavy
    ]


@pytest.mark.parametrize("epochs_at_a_time", [False, True])
@pytest.mark.parametrize(("partitions", "labels"), [(3, "each"), (64, "ranges"), (8, "none")])
def test_a_chain_keeps_the_rows_of_each_partition_for_later_steps(
    tmp_path: Path, partitions: int, labels: str, epochs_at_a_time: bool
) -> None:
    made = answers(
        tmp_path, FLOW_PAIRS, partitions, labels=labels, epochs_at_a_time=epochs_at_a_time
    )
    expected = flow_pairs_by_a_plain_loop(made.rows["a"])
    assert ordered(made.answers["flow_pairs"]) == ordered(expected)
    assert made.left_to_sql == set()
    # One task computes all three operators of its partitions.
    chains = [[step.query for step in task.steps] for task in made.tasks]
    assert ["flows", "heavy_flows", "flow_pairs"] in chains
    # Nothing more arrives at the end; carried rows are joined.
    alone = [["flow_pairs"]] if epochs_at_a_time else []
    assert all(each in (["flows", "heavy_flows", "flow_pairs"], *alone) for each in chains)


@pytest.mark.parametrize(("partitions", "labels"), [(3, "each"), (64, "ranges")])
def test_what_reads_a_merge_is_computed_below_it(
    tmp_path: Path, partitions: int, labels: str
) -> None:
    text = (
        f"{LINKS} Query both: MERGE there.tb : back.tb FROM there, back;"
        " Query u: SELECT tb, srcIP, sum(cnt) as c FROM both GROUP BY tb, srcIP"
        " HAVING sum(cnt) > 90"
    )
    made = answers(tmp_path, text, partitions, labels=labels)
    sums: Counter[tuple[Any, ...]] = Counter()
    for table in (*made.rows["a"], *made.rows["b"]):
        for row in table.to_pylist():
            sums[row["tb"], row["srcIP"]] += row["count0"]
    expected = [(*key, count) for key, count in sums.items() if count > 90]
    assert ordered(made.answers["u"]) == ordered(expected)
    assert ["there", "back", "both", "u"] in [[s.query for s in t.steps] for t in made.tasks]


@pytest.mark.parametrize(("partitions", "labels"), [(1, "none"), (3, "each"), (64, "mixed")])
def test_rows_that_wait_are_those_of_later_epochs_only(
    tmp_path: Path, partitions: int, labels: str
) -> None:
    """A RIGHT JOIN would answer rows again that it kept too long, as rows without a partner."""
    text = FLOW_PAIRS.replace(
        "FROM heavy_flows S1, heavy_flows S2\nWHERE",
        "FROM heavy_flows S1 RIGHT OUTER JOIN heavy_flows S2 ON",
    ).replace("S1.tb, S1.srcIP, S1.max_cnt, S2.max_cnt", "S2.tb, S2.srcIP, S2.max_cnt, S1.max_cnt")
    made = Chained(tmp_path, program_of(text, partitions), labels=labels)
    with divided_steps(portion_rows=60):
        made.run(made.messages(count=40), is_in_portions=True)
    assert made.left_to_sql == set()
    if partitions == 1:
        # Without partitions, the evaluator keeps the rows that wait (tests/golden).
        return
    heavy = heavy_flows_by_a_plain_loop(made.rows["a"])
    expected = [(tb, who, most, heavy.get((tb + 1, who))) for (tb, who), most in heavy.items()]
    assert ordered(made.answers["flow_pairs"]) == ordered(expected)
    assert sum(len(task.steps) > 1 for task in made.tasks) > 2


def test_rows_that_wait_are_divided_again_if_the_number_of_partitions_changes(
    tmp_path: Path,
) -> None:
    """A restart with another number of partitions must not trust the labels of carried rows."""
    batch = Batch("heavy_flows", 1, "x/y.parquet", 5, 100, (), (RowGroup(0, 32, 5, 100),))
    before = Steps(program_of(FLOW_PAIRS, 64))
    side = before.operators["flow_pairs"].sides[1]
    side.ports["heavy_flows"].pending = [batch]
    saved = before.snapshot()
    same_number, other = Steps(program_of(FLOW_PAIRS, 64)), Steps(program_of(FLOW_PAIRS, 8))
    for steps, expected in ((same_number, batch), (other, replace(batch, row_groups=()))):
        steps.restore(1, saved, before.partitioning)
        ports = steps.operators["flow_pairs"].sides[1].ports
        assert ports["heavy_flows"].pending == [expected]
    assert before.partitioning == "64 partitions by (srcIP)"
    assert tmp_path.exists()


def test_a_task_reads_only_the_row_groups_of_its_partitions(tmp_path: Path) -> None:
    made = Chained(tmp_path, program_of(QUERIES["having"], 4))
    messages = made.messages()
    read: list[tuple[int, ...]] = []
    real = pq.ParquetFile.read_row_groups

    def spy(file: pq.ParquetFile, groups: list[int], **settings: Any) -> pa.Table:
        read.append(tuple(groups))
        return real(file, groups, **settings)

    with (
        divided_steps(portion_rows=10_000),
        mock.patch.object(pq.ParquetFile, "read_row_groups", spy),
    ):
        made.run(messages)
    assert len(made.tasks) == 2
    batches = [message for message in messages if isinstance(message, Batch)]
    assert all(len(batch.row_groups) == 4 for batch in batches)
    # Each row group once, whichever task reads it.
    assert Counter(group for groups in read for group in groups) == dict.fromkeys(
        range(4), len(batches)
    )


def test_small_steps_are_not_divided(tmp_path: Path) -> None:
    made = Chained(tmp_path, program_of(QUERIES["having"], 64))
    made.run(made.messages())
    assert made.answers["q"]
    assert not made.tasks


def test_without_labels_a_step_is_not_divided(tmp_path: Path) -> None:
    """Every task would read and hash all rows."""
    made = Chained(tmp_path, program_of(QUERIES["having"], 64), labels="none")
    with mock.patch.object(limits, "SPLIT_ROWS", 1):
        made.run(made.messages())
    assert made.answers["q"]
    assert not made.tasks


def test_partitions_hold_equal_shares(tmp_path: Path) -> None:
    """So tasks with as many partitions have about as much to do."""
    made = Chained(tmp_path, program_of(QUERIES["having"], 8))
    (lfta, *_) = made.program.lftas
    assert lfta.partitioning is not None
    random_rows = np.random.default_rng(1).integers(0, 1 << 32, 20_000)
    table = pa.table(
        {
            "srcIP": pa.array([bytes(12) + int(n).to_bytes(4) for n in random_rows], pa.binary(16)),
            "destIP": pa.array([bytes(16)] * len(random_rows), pa.binary(16)),
        }
    )
    found = np.bincount(partitions_of_rows(table, lfta.partitioning.members, 8), minlength=8)
    assert found.max() < 1.1 * found.mean()
