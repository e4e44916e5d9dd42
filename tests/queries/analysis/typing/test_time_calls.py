"""date_trunc, time_bucket and to_timestamp against Python's calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.queries.analysis.analyze import analyze
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.catalog.safety import is_lfta_safe
from gscope.queries.expressions.types import Direction
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.logical import LogicalQuery, Project

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.timedeltas(timedelta(days=-90_000), timedelta(days=100_000)).map(
    lambda distance: EPOCH + distance
)


def query(text: str) -> LogicalQuery:
    return analyze([parse(text)], ("a",), {}, {}).queries[-1]


def column(expression: str, time_ns: int) -> object:
    root = query(f"SELECT {expression} AS x FROM TCP").root
    assert isinstance(root, Project)
    values = {"timestamp": time_ns, "time": time_ns // 10**9}
    return evaluate(root.columns[0].expression, lambda leaf: values[leaf.name])


def nanoseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1) * 1000


def beginning(moment: datetime, unit: str) -> datetime:
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return {
        "millisecond": moment.replace(microsecond=moment.microsecond // 1000 * 1000),
        "second": moment.replace(microsecond=0),
        "minute": moment.replace(second=0, microsecond=0),
        "hour": moment.replace(minute=0, second=0, microsecond=0),
        "day": midnight,
        "week": midnight - timedelta(days=midnight.weekday()),
    }[unit]


UNITS = ("millisecond", "second", "minute", "hour", "day", "week")


@pytest.mark.parametrize("unit", UNITS)
@settings(deadline=None, max_examples=40)
@given(moment=MOMENTS)
def test_date_trunc_is_the_beginning_of_the_unit(unit: str, moment: datetime) -> None:
    found = column(f"date_trunc('{unit}', timestamp)", nanoseconds(moment) + 7)
    assert found == nanoseconds(beginning(moment, unit))


@settings(deadline=None, max_examples=40)
@given(MOMENTS)
def test_a_bucket_begins_at_a_multiple_of_its_length(moment: datetime) -> None:
    seconds = (moment - EPOCH) // timedelta(seconds=1)
    found = column("time_bucket('90 sec', timestamp)", nanoseconds(moment))
    assert found == (seconds - seconds % 90) * 10**9
    assert found == column("time_bucket(INTERVAL '90 sec', timestamp)", nanoseconds(moment))


@settings(deadline=None, max_examples=40)
@given(MOMENTS)
def test_seconds_become_the_time_that_they_count(moment: datetime) -> None:
    whole = moment.replace(microsecond=0)
    assert column("to_timestamp(time)", nanoseconds(moment)) == nanoseconds(whole)
    assert column("to_timestamp(time + 0.5)", nanoseconds(whole)) == nanoseconds(whole) + 5 * 10**8


@pytest.mark.parametrize("unit", [*UNITS, "microsecond", "Minutes"])
def test_a_unit_of_time_is_an_epoch_of_an_lfta(unit: str) -> None:
    term = f"date_trunc('{unit}', timestamp)"
    made = query(f"SELECT {term} AS t FROM TCP")
    assert made.schema["t"].ordering.direction is Direction.INCREASING
    assert isinstance(made.root, Project)
    assert is_lfta_safe(made.root.columns[0].expression)
    assert (
        query(f"SELECT t, count(*) FROM TCP GROUP BY {term} AS t").schema["t"].ordering.is_temporal
    )


def test_groups_that_live_on_may_move_by_units_of_time() -> None:
    closing = "CLOSING_WHEN count(*) = 0"
    for term in ("time_bucket('10 sec', timestamp)", "to_timestamp(time/60*60)"):
        assert query(f"SELECT t, count(*) FROM TCP GROUP BY {term} AS t {closing}").schema.names
