"""Delivery on record: whenever the supervisor is killed, every row is in the sink once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from gscope.cli.delivery.checkpoint import DeliveryCheckpoint, DeliveryPosition, StreamPosition
from gscope.cli.delivery.delivery import Delivery
from gscope.errors import GscopeError
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import Program, QueryInput
from gscope.queries.streams.process_events import CommittedOutput

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = Schema((ColumnSchema("n", GsqlType.INT),))
PROGRAM = Program(("a",), (), (), (("q", QueryInput("q")),), (("q", SCHEMA),))


class Killed(Exception):
    """The process ended here."""


class ScriptedSink:
    """Keeps what is on record and forgets the rest, as files that are cut back do.

    Args:
        rows: those on record before.
        holds: holds rows back as long as it is true.
        dies: where the process is killed: "write", "settle" or "publish".
    """

    def __init__(self, rows: list[int], *, holds: bool = False, dies: str = "") -> None:
        self.rows = list(rows)
        self.holds = holds
        self.dies = dies

    def _may_die(self, where: str) -> None:
        if self.dies == where:
            raise Killed

    def begin(self, query: str, schema: pa.Schema) -> None: ...

    def write(self, query: str, table: pa.Table) -> None:
        self.rows += table["n"].to_pylist()
        self._may_die("write")

    def settle(self, *, is_last: bool) -> dict[str, Any] | None:
        self._may_die("settle")
        return {"rows": self.rows.copy()} if is_last or not self.holds else None

    def publish(self) -> None:
        self._may_die("publish")

    def close(self, *, is_complete: bool) -> None: ...


class Job:
    """Published outputs of steps, as the HFTA job leaves them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "outputs"
        (self.folder / "q").mkdir(parents=True)

    def commit(self, step: int) -> list[CommittedOutput]:
        path = self.folder / "q" / f"{step}.arrow"
        table = pa.table({"n": pa.array([step], pa.int64())})
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
        return self.reported(step)

    def reported(self, step: int) -> list[CommittedOutput]:
        return [CommittedOutput("q", f"q/{step}.arrow", 1)]

    @property
    def left(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "q").iterdir())


def resumed(
    job: Job, run_dir: Path, **how: Any
) -> tuple[Delivery, ScriptedSink, DeliveryCheckpoint]:
    delivered = DeliveryCheckpoint(run_dir)
    sink = ScriptedSink(delivered.position.sink.get("rows", []), **how)
    return Delivery(PROGRAM, job.folder, sink, delivered), sink, delivered


def test_a_step_reported_again_is_not_delivered_again(tmp_path: Path) -> None:
    job = Job(tmp_path)
    sink = ScriptedSink([])
    answers = Delivery(PROGRAM, job.folder, sink)
    answers.begin()
    for step in (1, 1, 2, 1):
        answers.on_commit(step, job.commit(step) if step not in sink.rows else job.reported(step))
    assert sink.rows == [1, 2]
    assert (job.left, answers.rows) == ([], {"q": 2})


@pytest.mark.parametrize("dies", ["write", "settle", "publish"])
def test_killed_at_any_moment_each_step_is_delivered_once(tmp_path: Path, dies: str) -> None:
    job = Job(tmp_path)
    answers, _, _ = resumed(job, tmp_path)
    answers.begin()
    answers.on_commit(1, job.commit(1))
    answers, _, _ = resumed(job, tmp_path, dies=dies)
    with pytest.raises(Killed):
        answers.on_commit(2, job.commit(2))
    answers, sink, delivered = resumed(job, tmp_path)
    answers.begin()
    for step in (1, 2):
        answers.on_commit(step, job.reported(step))
    answers.on_commit(3, job.commit(3))
    assert sink.rows == [1, 2, 3]
    assert answers.rows == {"q": 3}
    assert delivered.position.step == 3
    assert job.left == []


def test_outputs_stay_as_long_as_the_sink_holds_their_rows_back(tmp_path: Path) -> None:
    job = Job(tmp_path)
    answers, sink, delivered = resumed(job, tmp_path, holds=True)
    answers.begin()
    answers.on_commit(1, job.commit(1))
    answers.on_commit(1, job.reported(1))
    assert job.left == ["1.arrow"]
    assert delivered.position == DeliveryPosition()
    sink.holds = False
    answers.on_tick()
    assert job.left == []
    assert delivered.position.step == 1


def acknowledged(
    answers: Delivery, rows: Any, streams: dict[str, StreamPosition]
) -> dict[str, int]:
    replies: list[dict[str, int]] = []
    answers.on_rows(rows, streams, replies.append)
    (reply,) = replies
    return reply


def test_streams_may_be_acknowledged_when_their_rows_are_on_record(tmp_path: Path) -> None:
    job = Job(tmp_path)
    answers, sink, _ = resumed(job, tmp_path, holds=True)
    rows = [("q", [pa.table({"n": pa.array([7], pa.int64())})])]
    assert acknowledged(answers, rows, {"s": StreamPosition(3, 5, 9)}) == {}
    assert acknowledged(answers, [], {"t": StreamPosition(1, 1)}) == {}
    sink.holds = False
    assert acknowledged(answers, [], {"s": StreamPosition(4, 6, 10)}) == {"s": 4, "t": 1}
    assert DeliveryCheckpoint(tmp_path).position.streams["s"] == StreamPosition(4, 6, 10)


def test_without_a_record_streams_are_acknowledged_at_once(tmp_path: Path) -> None:
    answers = Delivery(PROGRAM, tmp_path, ScriptedSink([]))
    assert acknowledged(answers, [], {"s": StreamPosition(4, 6, 10)}) == {"s": 4}


def test_at_the_end_nothing_is_held_back(tmp_path: Path) -> None:
    job = Job(tmp_path)
    answers, _, delivered = resumed(job, tmp_path, holds=True)
    answers.on_commit(1, job.commit(1))
    answers.finish()
    assert delivered.position.step == 1


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 2}', '{"schema": 1, "streams": {"s": 1}}'])
def test_a_damaged_record_is_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "delivered.json").write_text(text)
    with pytest.raises(GscopeError, match="the run cannot continue"):
        DeliveryCheckpoint(tmp_path)


def test_a_record_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    delivered = DeliveryCheckpoint(tmp_path / "gone")
    with pytest.raises(GscopeError, match="cannot write"):
        delivered.record(DeliveryPosition(1))
    assert delivered.position == DeliveryPosition()
