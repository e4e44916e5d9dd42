"""Answers in a log: each portion once, whatever is repeated and wherever the process is killed."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.capture.answers.answer_writer import AnswerWriter
from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import WaitForRoom
from gscope.capture.log.log import StreamLog, read_log
from gscope.errors import StreamError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.partitioning.host_answers import host_program, of_host
from gscope.queries.streams.losses import LostRows
from gscope.queries.streams.messages import Batch, EndOfStream, Extent, Heartbeat

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gscope.queries.plan.program import Program

STREAM = "q.answers@a.up"
SCHEMA = pa.schema([pa.field("tb", pa.int64(), False), pa.field("n", pa.int64(), False)])
STEPS = [[1, 1], [], [2], [3, 3, 3], [4]]
"""The rows of each step, by epoch; step s is the one behind s others."""


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture(scope="module")
def program() -> Program:
    query = "DEFINE { query_name q; } SELECT tb, count(*) AS n FROM IP GROUP BY time/10 AS tb"
    context = CompileContext(interfaces=("a.up", "b.up"), hosts=("a", "b"), is_resumable=True)
    compiled = compile_queries([QueryText(query, "query")], context)
    return of_host(host_program(compiled.program, ("q",)), "a")


class Host:
    """The process that writes answers; each is the successor of one that was killed."""

    def __init__(self, folder: Path, program: Program, **options: int) -> None:
        specs = [
            StreamSpec.from_lfta(each, name) for each in program.answers for name in each.interfaces
        ]
        budget = WaitForRoom(options.get("limit_bytes", 1 << 30))
        served = tuple(each.name for each in specs)
        self.log = StreamLog(folder, specs, budget=budget, most_registered=1, served=served)
        self.writer = AnswerWriter(self.log, program, folder)

    def send(self, step: int) -> None:
        """Send a step as the process that was killed may have begun to."""
        for number, epoch in enumerate(STEPS[step]):
            rows = pa.table([[epoch], [step]], schema=SCHEMA)
            self.writer.write(STREAM, (step, number), rows, {})
        self.writer.write(STREAM, None, SCHEMA.empty_table(), {"tb": step + 1})

    def end(self) -> None:
        self.writer.write(STREAM, None, SCHEMA.empty_table(), {}, is_last=True)


def rows_in(folder: Path) -> list[tuple[int, int]]:
    tables = [
        pq.read_table(folder / each.path) for each in read_log(folder) if isinstance(each, Batch)
    ]
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


EXPECTED = [(epoch, step) for step, epochs in enumerate(STEPS) for epoch in epochs]


def test_what_is_repeated_is_written_once(tmp_path: Path, program: Program) -> None:
    host = Host(tmp_path, program)
    for step in (0, 0, 1, 2, 0, 1, 2, 3, 2, 4):
        host.send(step)
    host.end()
    host.end()
    host.send(4)
    host.log.close()
    assert rows_in(tmp_path) == EXPECTED
    messages = read_log(tmp_path)
    bounds = [p.bound for m in messages if isinstance(m, Heartbeat) for p in m.punctuations]
    assert bounds == [1, 2, 3, 4, 5]
    assert isinstance(messages[-1], EndOfStream)


class Countdown:
    """Kills the process at a moment: before or behind one of the calls that it wraps."""

    def __init__(self, moment: int) -> None:
        self._left = moment

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*words: object) -> object:
            self._pass()
            done = function(*words)
            self._pass()
            return done

        return called

    def _pass(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Killed


def test_killed_at_any_moment_each_row_is_there_once(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed before and behind each note that it writes, and each message."""
    for moment in itertools.count():
        folder = tmp_path / str(moment)
        folder.mkdir()
        host, countdown, sent = Host(folder, program), Countdown(moment), 0
        monkeypatch.setattr(host.writer, "_store", countdown.wrapped(host.writer._store))
        monkeypatch.setattr(host.log, "_publish", countdown.wrapped(host.log._publish))
        with suppress(Killed):
            while sent < len(STEPS):
                host.send(sent)
                sent += 1
        host.log.close()
        is_over = sent == len(STEPS)
        # A successor writes another message than the one that was lost, and is killed as well.
        host = Host(folder, program)
        host.writer.write(STREAM, None, SCHEMA.empty_table(), {}, (LostRows(()),))
        host.log.close()
        # The step before the one that was interrupted may come again, too.
        host = Host(folder, program)
        for step in range(max(0, sent - 1), len(STEPS)):
            host.send(step)
        host.end()
        host.log.close()
        assert rows_in(folder) == EXPECTED, moment
        if is_over:
            assert moment >= 4 * len(EXPECTED)
            break


def test_marks_of_losses_come_with_the_bound_and_stay(tmp_path: Path, program: Program) -> None:
    lost = LostRows((Extent("tb", 1, 2),), 7, "restart")
    host = Host(tmp_path, program)
    host.writer.write(STREAM, None, SCHEMA.empty_table(), {"tb": 3}, (lost,))
    host.log.close()
    host = Host(tmp_path, program)
    host.writer.write(STREAM, None, SCHEMA.empty_table(), {"tb": 3}, (lost,))
    host.writer.write(STREAM, None, SCHEMA.empty_table(), {"tb": 4})
    host.log.close()
    beats = [each for each in read_log(tmp_path) if isinstance(each, Heartbeat)]
    assert [each.losses.rows for each in beats if each.losses is not None] == [(lost,), (lost,)]


@pytest.mark.parametrize(
    ("stream", "rows"),
    [
        ("q@a.up", SCHEMA.empty_table()),
        ("q.answers@b.up", SCHEMA.empty_table()),
        (STREAM, pa.table({"tb": [1]})),
        (STREAM, pa.table([[None], [1]], names=["tb", "n"])),
        (STREAM, pa.table([["x"], [1]], names=["tb", "n"])),
    ],
)
def test_foreign_rows_are_refused(
    tmp_path: Path, program: Program, stream: str, rows: pa.Table
) -> None:
    host = Host(tmp_path, program)
    with pytest.raises(StreamError):
        host.writer.write(stream, (0, 0), rows, {})
    host.log.close()
    assert rows_in(tmp_path) == []


def test_answers_stay_until_a_reader_has_registered(tmp_path: Path, program: Program) -> None:
    host = Host(tmp_path, program)
    host.send(0)
    assert host.log.positions[STREAM].base == 0
    host.log.register("run")
    assert host.log.unacknowledged()["run"]["waiting_tuples"] == 2
    end = host.log.positions[STREAM].end
    host.log.acknowledge("run", {STREAM: end})
    assert host.log.positions[STREAM].base == end
    host.log.close()
