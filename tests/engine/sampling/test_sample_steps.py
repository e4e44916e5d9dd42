"""The operator in steps: one answer for all batchings of packets, heartbeats and restarts.

Batches hold packets of several windows, arrive from two interfaces in any interleaving, and are
read in part by some steps; a restart may come between any two steps. Segments and states are real
files.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from tests.engine.sampling.sampled import BASE_S, Packet, Row, Sampled, leaf_of, packet

from gscope.engine.running.vectors import from_list, to_arrow
from gscope.engine.sampling.fold import fold
from gscope.engine.sampling.tuples import Segment, read_tuples
from gscope.engine.spark.sql.inputs import portions
from gscope.engine.steps.steps import Evaluation, Step, Steps
from gscope.engine.storage.parquet_files import State
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import GsqlType
from gscope.queries.streams.messages import (
    Batch,
    EndOfStream,
    Extent,
    Heartbeat,
    Message,
    Punctuation,
)

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.engine.operators.base import Work

QUERY = """
SELECT tb, srcIP, uts, UMAX(sum(len), ssthreshold()) FROM IP WHERE ssample(len, 3) = TRUE
GROUP BY time/5 AS tb, srcIP, uts SUPERGROUP BY srcIP
HAVING ssfinal_clean(sum(len)) = TRUE
CLEANING_WHEN ssdo_clean() = TRUE CLEANING_BY ssclean_with(sum(len)) = TRUE
"""


@dataclass
class Plane:
    """Evaluates the steps of one sampling operator on files."""

    query: Sampled
    folder: Path
    steps: Steps = field(init=False)
    answers: list[Row] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        self.program = compile_queries([QueryText(QUERY, "q")], CompileContext(("a", "b"))).program
        self.steps = Steps(self.program)

    def segment(self, packets: list[Packet]) -> str:
        """Write what an LFTA ships of ``packets`` as the log does, and return the path."""
        self.number += 1
        (lfta,) = self.program.lftas
        table = {}
        for column in lfta.columns:
            kind = column.expression.type
            values = [evaluate(column.expression, leaf_of(each)) for each in packets]
            stored = to_arrow(from_list(values, kind), kind)
            table[column.name] = stored.cast(pa.binary(16)) if kind is GsqlType.IP else stored
        path = self.folder / f"{self.number}.parquet"
        pq.write_table(pa.table(table), path)
        return str(path)

    def run(self, step: Step) -> None:
        (work,) = step.works
        states = [("q", self._fold(step, work))] if work.reads_rows else []
        self.steps.on_evaluated(Evaluation(states=tuple(states)))

    def _fold(self, step: Step, work: Work) -> State | None:
        (taken,) = work.inputs
        node = self.program.nodes[0]
        found: list[tuple[str, int, Segment]] = []
        for (_, low), batches in portions(work, taken).items():
            found += [(p, b.sequence, Segment(b.path, low, work.high)) for p, b in batches]
        found.sort(key=lambda each: each[:2])
        before = None if work.state is None else pq.read_table(self.folder / work.state.path)
        tables: list[pa.Table] = []
        rows = read_tuples(node, [segment for *_, segment in found])  # type: ignore[arg-type]
        folded = fold(node, rows, before, tables.append)  # type: ignore[arg-type]
        self.answers += [row for table in tables for row in self.query.plain(table)]
        if folded.states is None:
            return None
        path = f"state-{step.number}.parquet"
        pq.write_table(folded.states, self.folder / path)
        return State("q", step.number, path, folded.states.num_rows, 0, ())

    def restart(self, log: list[Message]) -> None:
        """Continue in a new process: from the last commit, with the log from what is needed."""
        saved = json.loads(json.dumps(self.steps.snapshot()))
        number, needed = self.steps.number, self.steps.needed()
        self.steps = Steps(self.program)
        self.steps.restore(number, saved)
        self.steps.on_messages([m for m in log if m.sequence >= needed[m.stream]])


def packets_of(chance: random.Random) -> dict[str, list[Packet]]:
    times = {name: sorted(chance.randrange(40 * 10**9) for _ in range(60)) for name in ("a", "b")}
    return {
        name: [packet(at, chance.choice((40, 600, 1500)), chance.randrange(3)) for at in every]
        for name, every in times.items()
    }


def epochs_of(packets: list[Packet]) -> tuple[Extent, ...]:
    tb = [each["time"] // 5 for each in packets]
    uts = [each["time_ns"] for each in packets]
    return (Extent("tb", min(tb), max(tb)), Extent("uts", min(uts), max(uts)))


def messages_of(
    chance: random.Random, plane: Plane, name: str, packets: list[Packet]
) -> list[Message]:
    """Batches of any size with heartbeats between them, and the end."""
    stream = f"q@{name}"
    found: list[Message] = []
    rest = list(packets)
    while rest:
        size = chance.randrange(1, 25)
        batch, rest = rest[:size], rest[size:]
        made = Batch(stream, len(found), plane.segment(batch), len(batch), 1, epochs_of(batch))
        found.append(made)
        if rest and chance.random() < 0.7:
            at = rest[0]["time"]
            bounds = (Punctuation("tb", at // 5), Punctuation("uts", at * 10**9))
            found.append(Heartbeat(stream, len(found), 0, 0, bounds))
    found.append(EndOfStream(stream, len(found)))
    return found


def test_one_answer_for_all_batchings_and_restarts(tmp_path: Path) -> None:
    query = Sampled(QUERY)
    for number in range(20):
        chance = random.Random(number)
        packets = packets_of(chance)
        plane = Plane(query, tmp_path)
        both = [*packets["a"], *packets["b"]]
        expected, _ = query.answers(sorted(both, key=lambda each: each["time_ns"]))
        waiting = {n: messages_of(chance, plane, n, packets[n]) for n in packets}
        log: list[Message] = []
        restarts = 0
        while any(waiting.values()):
            name = chance.choice([n for n in waiting if waiting[n]])
            message = waiting[name].pop(0)
            log.append(message)
            plane.steps.on_messages([message])
            if chance.random() < 0.3 or not any(waiting.values()):
                while (step := plane.steps.next()) is not None:
                    plane.run(step)
                if chance.random() < 0.3:
                    plane.restart(log)
                    restarts += 1
        while (step := plane.steps.next()) is not None:
            plane.run(step)
        assert plane.steps.is_finished
        assert sorted(plane.answers) == sorted(expected), f"stream {number}"
        assert plane.steps.operators["q"].late_tuples == 0


def test_late_packets_are_counted_and_in_no_answer(tmp_path: Path) -> None:
    query = Sampled(QUERY)
    plane = Plane(query, tmp_path)
    first, late = [packet(0, 1500)], [packet(10**9, 1500)]

    def batch(sequence: int, packets: list[Packet]) -> Batch:
        return Batch("q@a", sequence, plane.segment(packets), 1, 1, epochs_of(packets))

    epoch = BASE_S // 5
    bounds = (Punctuation("tb", epoch + 1), Punctuation("uts", (BASE_S + 5) * 10**9))
    plane.steps.on_messages([batch(0, first), Heartbeat("q@a", 1, 0, 0, bounds)])
    plane.steps.on_messages([EndOfStream("q@b", 0)])
    step = plane.steps.next()
    assert step is not None
    plane.run(step)
    plane.steps.on_messages([batch(2, late), EndOfStream("q@a", 3)])
    while (step := plane.steps.next()) is not None:
        plane.run(step)
    assert [row[2] for row in plane.answers] == [first[0]["time_ns"]]
    assert plane.steps.operators["q"].late_tuples == 1
