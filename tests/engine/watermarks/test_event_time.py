"""Watermarks as times."""

from __future__ import annotations

from gscope.engine.watermarks.event_time import EventTimes
from gscope.queries.compile import CompileContext, QueryText, compile_queries

QUERIES = """
DEFINE { query_name 'tens'; visibility 'external'; }
SELECT tb, count(*) as cnt FROM IP GROUP BY time/10 as tb;
DEFINE { query_name 'minutes'; }
SELECT mb, sum(cnt) as total FROM tens GROUP BY tb/6 as mb;
DEFINE { query_name 'pairs'; }
SELECT S.tb, S.cnt, R.cnt OUTER_JOIN FROM tens S, tens R WHERE S.tb = R.tb + 1;
"""
SECOND = 1_000_000_000


def times() -> EventTimes:
    program = compile_queries([QueryText(QUERIES, "q.gsql")], CompileContext(("eth0",))).program
    return EventTimes(program)


def test_an_epoch_begins_at_a_time() -> None:
    assert times().of("tens", 170_000_000) == 1_700_000_000 * SECOND


def test_epochs_are_followed_through_other_queries() -> None:
    assert times().of("minutes", 28_333_333) == 28_333_333 * 60 * SECOND
    assert times().of("pairs", 170_000_000) == 1_700_000_000 * SECOND


def test_the_next_epoch_is_found_from_the_last() -> None:
    found = times()
    numbers = (100, 101, 102, 105, 50)
    assert [found.of("minutes", n) for n in numbers] == [n * 60 * SECOND for n in numbers]


def test_what_promises_nothing_or_has_ended_is_no_time() -> None:
    assert times().of("tens", float("-inf")) is None
    assert times().of("tens", float("inf")) is None
    assert times().of("unknown", 7) is None


def test_an_epoch_that_is_asked_for_again_begins_at_the_same_time() -> None:
    found = times()
    assert found.of("tens", 0) is found.of("tens", 0) is None
    numbers = (100, 100, 101, 101, 50, 50, 0, 50)
    begins = [None if n == 0 else n * 60 * SECOND for n in numbers]
    assert [found.of("minutes", n) for n in numbers] == begins
