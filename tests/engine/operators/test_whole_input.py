"""A whole input is one epoch.

One step answers it when all its streams have ended, whatever came and whatever died.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest import mock

from gscope.engine.steps.needed_bounds import needed_promises
from gscope.engine.steps.steps import Steps
from gscope.engine.watermarks import release_size
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import Batch, EndOfStream, Extent, Heartbeat, Punctuation

if TYPE_CHECKING:
    from gscope.queries.plan.program import Program

TEXT = "Query total: SELECT count(*) AS cnt FROM IP; Query again: SELECT sum(cnt) AS s FROM total"


def program(text: str = TEXT) -> Program:
    context = CompileContext(("a", "b"), only=("total", "again") if text == TEXT else ())
    return compile_queries([QueryText(text, "q.gsql")], context).program


def batch(stream: str, sequence: int) -> Batch:
    extents = (Extent("whole_input", 0, 0),)
    return Batch(stream, sequence, f"{stream}-{sequence}", 60, 0, extents)


def beat(stream: str, sequence: int) -> Heartbeat:
    return Heartbeat(stream, sequence, 0, 0, (Punctuation("whole_input", 0),))


def steps_of(steps: Steps) -> list[tuple[str, bool, int]]:
    """The query, whether it has a row of its own, and the rows read.

    They are of each work up to the last step.
    """
    found = []
    while (step := steps.next()) is not None:
        found += [(w.node.query, w.makes_row, w.rows) for w in step.works if w.reads_rows]
    return found


def test_nothing_is_answered_before_all_streams_have_ended() -> None:
    steps = Steps(program())
    one, other = steps.streams
    steps.on_messages([batch(one, 0), beat(one, 1), beat(other, 0), EndOfStream(other, 1)])
    assert steps_of(steps) == []
    steps.on_messages([batch(one, 2), EndOfStream(one, 3)])
    assert steps_of(steps) == [("total", True, 120), ("again", True, 0)]
    assert steps.is_finished


def test_an_input_without_rows_is_answered_once_as_well() -> None:
    steps = Steps(program())
    steps.on_messages([EndOfStream(stream, 0) for stream in steps.streams])
    assert steps_of(steps) == [("total", True, 0), ("again", True, 0)]


def test_a_large_input_is_answered_in_one_step_and_nothing_comes_behind_it() -> None:
    with mock.patch.object(release_size, "MAX_STEP_ROWS", 10):
        steps = Steps(program("SELECT count(*) AS cnt FROM a.IP"))
        (stream,) = steps.streams
        steps.on_messages([*(batch(stream, n) for n in range(5)), EndOfStream(stream, 5)])
        assert steps_of(steps) == [("query" if "query" in steps.operators else "q", True, 300)]
    assert steps.is_finished


def test_a_restart_behind_the_answer_does_not_give_it_again() -> None:
    steps = Steps(program())
    messages = [EndOfStream(stream, 0) for stream in steps.streams]
    steps.on_messages(messages)
    assert len(steps_of(steps)) == 2
    again = Steps(program())
    again.restore(steps.number, steps.snapshot())
    again.on_messages(messages)
    assert steps_of(again) == []
    assert again.is_finished


def test_a_restart_before_it_gives_it() -> None:
    steps = Steps(program())
    one, other = steps.streams
    steps.on_messages([batch(one, 0), beat(one, 1), EndOfStream(other, 0)])
    assert steps_of(steps) == []
    again = Steps(program())
    again.restore(steps.number, steps.snapshot())
    again.on_messages([batch(one, 0), beat(one, 1), EndOfStream(one, 2), EndOfStream(other, 0)])
    assert steps_of(again) == [("total", True, 60), ("again", True, 0)]


def test_groups_with_keys_make_no_row_of_nothing() -> None:
    steps = Steps(program("SELECT srcIP, count(*) AS cnt FROM a.IP GROUP BY srcIP"))
    steps.on_messages([EndOfStream(stream, 0) for stream in steps.streams])
    assert steps_of(steps) == []
    assert steps.is_finished


def test_no_heartbeat_is_asked_for() -> None:
    steps = Steps(program())
    one, other = steps.streams
    steps.on_messages([batch(one, 0), beat(other, 0)])
    assert steps_of(steps) == []
    assert needed_promises(steps.operators) == {}


UNION = "Query u: SELECT count(*) AS cnt FROM a.TCP UNION ALL SELECT len FROM a.UDP"


def union() -> tuple[Steps, str, str]:
    """The steps of a union, the stream of its counts, and that of its rows."""
    steps = Steps(program(UNION))
    counts, rows = (lfta.stream("a") for lfta in steps.program.lftas)
    return steps, counts, rows


def test_a_union_without_a_time_waits_for_the_end_of_all_its_inputs() -> None:
    steps, counts, rows = union()
    steps.on_messages([Batch(rows, 0, "r-0", 60, 0, ()), EndOfStream(rows, 1)])
    assert "u" not in [query for query, *_ in steps_of(steps)]
    steps.on_messages([batch(counts, 0), beat(counts, 1)])
    assert steps_of(steps) == []
    steps.on_messages([EndOfStream(counts, 2)])
    assert [query for query, *_ in steps_of(steps)][-1] == "u"
    assert steps.is_finished


def test_a_union_without_a_time_asks_for_no_heartbeat_and_is_answered_once() -> None:
    steps, counts, rows = union()
    messages = [batch(counts, 0), Batch(rows, 0, "r-0", 60, 0, ())]
    steps.on_messages(messages)
    assert "u" not in [query for query, *_ in steps_of(steps)]
    assert needed_promises(steps.operators) == {}
    ends = [EndOfStream(counts, 1), EndOfStream(rows, 1)]
    steps.on_messages(ends)
    assert [query for query, *_ in steps_of(steps)][-1] == "u"
    again = Steps(program(UNION))
    again.restore(steps.number, steps.snapshot())
    again.on_messages([*messages, *ends])
    assert steps_of(again) == []
