"""Which epochs a loss marks: gaps of the log, rows shed by the job, groups that live, restarts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.engine.operators.driven import Driven

from gscope.engine.steps.batch_leases import leased_batches, without_shed
from gscope.engine.steps.disk_budget import JobDiskBudget
from gscope.engine.steps.steps import Carry, Evaluation, Steps
from gscope.engine.storage.commits import Commit, CommitLog
from gscope.engine.storage.parquet_files import State
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.loss_reasons import IncompleteEpochs
from gscope.queries.streams.losses import Losses, LossPeriod
from gscope.queries.streams.messages import Batch, EndOfStream, Extent, Heartbeat, Punctuation, Shed

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000_000
TENS = "SELECT tb, count(*) AS cnt FROM a.IP GROUP BY time/10 AS tb"
RUNNING = (
    "SELECT tb, srcIP, running_sum(len) AS s FROM a.IP"
    " GROUP BY time/10 AS tb, srcIP CLOSING_WHEN count(*) = 0"
)


def dropped(first_s: float, last_s: float, packets: int | None = 5) -> LossPeriod:
    return LossPeriod("kernel", int(first_s * SECOND), int(last_s * SECOND), packets)


class MarkedQuery(Driven):
    """One operator, and what its epochs are marked as."""

    def lose(self, bound: int, *periods: LossPeriod) -> None:
        """Send a heartbeat that promises a bound and lists losses."""
        (name,) = self.steps.streams
        promise = (Punctuation(self.column, bound),)
        losses = Losses(periods)
        self._send(Heartbeat(name, self._next(name), 0, 0, promise, losses=losses))

    def shed(self, batch: Batch) -> None:
        """Put a gap in the place of the next batch."""
        name = batch.stream
        self._send(Shed(name, self._next(name), batch.rows, 9, batch.extents))

    def marked(self) -> list[tuple[str, int | None, int | None, int | None]]:
        """Reason, first and last epoch, and packets of what is marked in the next steps."""
        self.released()
        return [(e.reason, e.first, e.last, e.packets) for e in self.steps.incomplete.mark()]


def test_a_loss_marks_the_epochs_that_it_overlaps_once_they_are_answered() -> None:
    query = MarkedQuery(TENS, "tb")
    query.lose(2, dropped(19.5, 40.0))
    assert query.marked() == [("kernel", 1, 1, 5)]
    query.lose(4, dropped(19.5, 40.0), dropped(41.0, 41.5))
    assert query.marked() == [("kernel", 2, 3, 5)]
    query.lose(9, dropped(19.5, 40.0), dropped(41.0, 41.5))
    assert query.marked() == [("kernel", 4, 4, 10)]
    (name,) = query.steps.operators
    assert query.steps.incomplete.counts(name) == {"kernel": 4}


def test_losses_that_a_list_joins_are_not_marked_between() -> None:
    query = MarkedQuery(TENS, "tb")
    query.lose(2, dropped(11, 12), dropped(31, 32))
    query.lose(2, dropped(11, 32, 10))
    query.lose(9, dropped(11, 32, 10))
    assert query.marked() == [("kernel", 1, 1, 5), ("kernel", 3, 3, 5)]


def test_one_that_has_missed_the_parts_errs_on_the_safe_side() -> None:
    query = MarkedQuery(TENS, "tb")
    query.lose(9, dropped(11, 32, 10))
    assert query.marked() == [("kernel", 1, 3, 10)]


def test_a_gap_of_the_log_marks_the_epochs_of_its_rows() -> None:
    query = MarkedQuery(TENS, "tb")
    (name,) = query.steps.streams
    query.shed(Batch(name, 0, "", 3, 30, (Extent("tb", 2, 3),)))
    query.beat(3)
    assert query.marked() == [("log", 2, 2, 9)]
    query.restart()
    query.beat(7)
    assert query.marked() == [("log", 3, 3, 9)]


def test_batches_that_are_gone_when_they_are_leased_mark_their_epochs() -> None:
    query = MarkedQuery(TENS, "tb")
    gone, kept = query.batch(0, 1, 2), query.batch(0, 3, 4)
    query.beat(4)
    step = query.steps.next()
    assert step is not None
    leased = leased_batches(step, query.steps)
    assert leased == {gone.stream: [gone.sequence, kept.sequence]}
    without_shed(step, query.steps, {gone.stream: (gone.sequence,)})
    assert query.marked() == [("log", 1, 2, None)]


def test_a_running_aggregate_lacks_packets_as_long_as_a_group_lives() -> None:
    query = MarkedQuery(RUNNING, "tb")
    query.batch(0, 0, 1)
    query.lose(2, dropped(15, 15.5))
    assert query.marked() == [("kernel", 1, 1, 5)]
    query.operator.state = State("q", 1, "state", 1, 0, ())
    query.restart()
    query.lose(5, dropped(15, 15.5))
    assert query.marked() == [("kernel", 2, 4, 5)]
    query.operator.state = None
    query.lose(8, dropped(15, 15.5))
    assert query.marked() == []


def test_marks_that_were_not_committed_are_made_again() -> None:
    query = MarkedQuery(TENS, "tb")
    query.lose(5, dropped(11, 12))
    query.released()
    saved = query.steps.snapshot()
    assert query.marked() == [("kernel", 1, 1, 5)]
    fresh = Steps(query.steps.program)
    fresh.restore(1, json.loads(json.dumps(saved)))
    (made,) = fresh.incomplete.mark()
    assert (made.first, made.last) == (1, 1)
    assert fresh.incomplete.recent(made.query) == (made,)
    assert fresh.incomplete.mark() == ()


def test_an_epoch_that_does_not_follow_from_time_is_marked_from_the_loss_on() -> None:
    query = MarkedQuery(TENS, "tb")
    (name,) = query.steps.streams
    # As of a gap whose extents say nothing of the epoch's column.
    query._send(Shed(name, 0, 3, None, ()))
    query.beat(3)
    assert query.marked() == [("log", None, 2, None)]
    query.beat(5)
    assert query.marked() == [("log", 3, 4, None)]


def test_what_the_job_sheds_marks_the_reader_alone(tmp_path: Path) -> None:
    texts = (
        "DEFINE { query_name 'flows'; } SELECT tb, srcIP, count(*) AS c FROM IP"
        " GROUP BY time/10 AS tb, srcIP;"
        "DEFINE { query_name 'talkers'; } SELECT tb2, count(*) AS n FROM flows GROUP BY tb/6 AS tb2"
    )
    program = compile_queries((QueryText(texts, "test"),), CompileContext(("eth0",))).program
    steps = Steps(program)
    (stream,) = steps.streams
    for number, tb in enumerate((6, 12), 1):
        batch = Batch("flows", number, f"carry-{number}", 5, 50, (Extent("tb", tb, tb),))
        steps.on_evaluated(Evaluation(carries=(Carry("talkers", 0, batch),)))
    JobDiskBudget(CommitLog(tmp_path), 60, is_live=True).fit(steps)
    steps.on_messages([EndOfStream(stream, 0)])
    while steps.next() is not None:
        pass
    marks = steps.incomplete.mark()
    assert marks == (IncompleteEpochs("talkers", "log", 1, 1, None),)
    commits = CommitLog(tmp_path)
    commits.write(Commit(1, steps.snapshot(), (), incomplete=marks))
    (read,) = CommitLog(tmp_path).recover()
    assert read.incomplete == marks
