"""The bounds that operators wait for, and the effect of demands for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.steps.test_steps import SetPlane, drain, program, scripts

from gscope.engine.steps.heartbeat_requests import Asker
from gscope.engine.steps.needed_bounds import Promises, needed_promises
from gscope.engine.steps.steps import Steps
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import Batch, EndOfStream, Extent, Heartbeat, Punctuation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.queries.plan.program import Program
    from gscope.queries.streams.messages import Message

MAX_EPOCHS = 40
"""More steps than a script has."""

UNION = """
DEFINE { query_name 'low'; }
SELECT time, timestamp, len FROM a.IP WHERE len > 10;
DEFINE { query_name 'high'; }
SELECT time, timestamp, len FROM b.IP WHERE len > 10;
DEFINE { query_name 'both'; }
MERGE low.timestamp : high.timestamp FROM low, high;
DEFINE { query_name 'counts'; }
SELECT tb, count(*) FROM both GROUP BY timestamp / INTERVAL '10 sec' as tb
"""


def compiled(text: str, *interfaces: str) -> Program:
    return compile_queries([QueryText(text, "q.gsql")], CompileContext(interfaces)).program


def beat(stream: str, sequence: int, **bounds: int) -> Heartbeat:
    promises = tuple(Punctuation(name, bound) for name, bound in bounds.items())
    return Heartbeat(stream, sequence, 0, 0, promises)


def batch(stream: str, sequence: int, least: int, greatest: int, column: str = "tb") -> Batch:
    return Batch(stream, sequence, f"{stream}-{sequence}", 1, 0, (Extent(column, least, greatest),))


def rows_of(plane: SetPlane) -> int:
    return sum(map(len, plane.answers.values()))


def wanted_by(steps: Steps) -> Promises:
    assert steps.next() is None
    return needed_promises(steps.operators)


def test_no_operator_waits_where_no_row_waits() -> None:
    steps = Steps(program("a", "b"))
    assert needed_promises(steps.operators) == {}
    steps.on_messages([beat("tens@a", 0, tb=7), beat("tens@b", 0, tb=5)])
    steps.next()
    assert needed_promises(steps.operators) == {}


def test_the_stream_that_holds_a_row_up_is_asked_for_the_end_of_its_epoch() -> None:
    steps = Steps(program("a", "b"))
    steps.on_messages([batch("tens@a", 0, 3, 3), beat("tens@a", 1, tb=9), beat("tens@b", 0, tb=2)])
    while steps.next() is not None:
        pass
    assert needed_promises(steps.operators) == {"tens@b": {"tb": 4}}


def test_backtracking_goes_through_operators_to_the_stream() -> None:
    """A minute of six epochs of ten seconds waits for the first epoch of the next minute."""
    steps = Steps(program("a"))
    plane = SetPlane({"tens@a-0": [3]})
    steps.on_messages([batch("tens@a", 0, 3, 3), beat("tens@a", 1, tb=4)])
    drain(steps, plane)
    (only,) = needed_promises(steps.operators).items()
    stream, promises = only
    assert stream == "tens@a"
    assert promises["tb"] >= 6


def test_a_stream_that_never_reported_anything_is_asked_for_what_it_has() -> None:
    steps = Steps(program("a", "b"))
    steps.on_messages([batch("tens@a", 0, 3, 3), beat("tens@a", 1, tb=9)])
    assert set(wanted_by(steps)) == {"tens@b"}


def test_a_stream_that_has_ended_is_not_asked() -> None:
    steps = Steps(program("a", "b"))
    steps.on_messages([batch("tens@a", 0, 3, 3), beat("tens@a", 1, tb=2), EndOfStream("tens@b", 0)])
    while steps.next() is not None:
        pass
    assert needed_promises(steps.operators) == {"tens@a": {"tb": 4}}


def test_a_merge_asks_for_its_first_row_and_no_more_than_its_time() -> None:
    steps = Steps(compiled(UNION, "a", "b"))
    low, high = steps.streams
    steps.on_messages([beat(low, 0, timestamp=100), beat(high, 0, timestamp=100)])
    while steps.next() is not None:
        pass
    steps.on_messages([batch(low, 1, 150, 170, "timestamp"), beat(low, 2, timestamp=300)])
    while steps.next() is not None:
        pass
    assert needed_promises(steps.operators) == {high: {"timestamp": 150}}


@given(scripts(), st.data())
def test_rows_wait_where_and_only_where_a_stream_is_asked_and_the_answers_release_some(
    script: tuple[list[Message], dict[str, list[int]], list[int]], data: st.DataObject
) -> None:
    messages, segments, _ = script
    steps = Steps(program("a", "b"))
    plane = SetPlane(segments)
    steps.on_messages(messages[: data.draw(st.integers(0, len(messages)))])
    drain(steps, plane)
    waits = any(side.pending for operator in steps.operators.values() for side in operator.sides)
    assert bool(needed_promises(steps.operators)) == waits
    before = rows_of(plane)
    # Only the extent of waiting rows is known: an epoch that is demanded may be empty.
    for sequence in range(1000, 1000 + MAX_EPOCHS):
        if rows_of(plane) > before:
            break
        for stream, promises in needed_promises(steps.operators).items():
            steps.on_messages([beat(stream, sequence, **(promises or {"tb": 1000}))])
        drain(steps, plane)
    assert (rows_of(plane) > before) == waits


def test_a_stream_is_asked_once_until_it_beats() -> None:
    steps = Steps(program("a", "b"))
    asked: list[Mapping[str, Mapping[str, int]]] = []
    asker = Asker(steps.operators, asked.append)
    steps.on_messages([batch("tens@a", 0, 3, 3), beat("tens@a", 1, tb=9), beat("tens@b", 0, tb=2)])
    while steps.next() is not None:
        pass
    for _ in range(3):
        asker.ask()
    assert asked == [{"tens@b": {"tb": 4}}]
    answer = beat("tens@b", 1, tb=3)
    steps.on_messages([answer])
    asker.on_messages([answer])
    asker.ask()
    assert len(asked) == asker.asked_total == 2
