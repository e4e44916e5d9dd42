"""Functions that round times down, and to_timestamp, against Python's calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.queries.analysis.analyze import analyze
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.catalog.safety import is_lfta_safe
from gscope.queries.expressions.types import Direction, GsqlType
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.logical import GroupBy, LogicalQuery, Project
from gscope.queries.plan.show_expressions import show

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.timedeltas(timedelta(days=-90_000), timedelta(days=100_000)).map(
    lambda distance: EPOCH + distance
)


def query(text: str) -> LogicalQuery:
    return analyze([parse(text)], ("a",), {}, {}).queries[-1]


def column(expression: str, time_ns: int) -> object:
    root = query(f"SELECT {expression} AS x FROM TCP").root
    assert isinstance(root, Project)
    values = {"timestamp": time_ns, "time_ns": time_ns, "time": time_ns // 10**9}
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


@pytest.mark.parametrize("unit", ["second", "minute", "hour", "day"])
@pytest.mark.parametrize("time", ["timestamp", "time_ns", "time", "time_ns/1000"])
@settings(deadline=None, max_examples=20)
@given(moment=MOMENTS)
def test_a_unit_begins_where_its_function_says(unit: str, time: str, moment: datetime) -> None:
    if "/" in time and moment < EPOCH:
        return  # the quotient of the query is truncated towards 1970
    assert column(f"{unit}({time})", nanoseconds(moment)) == nanoseconds(beginning(moment, unit))
    assert column(f"date_trunc('{unit}', {time})", nanoseconds(moment)) == nanoseconds(
        beginning(moment, unit)
    )


@settings(deadline=None, max_examples=40)
@given(MOMENTS)
def test_a_bucket_is_one_of_the_timestamp_unless_a_time_is_given(moment: datetime) -> None:
    time_ns = nanoseconds(moment) + 7
    for length_ns, text in ((250 * 10**6, "250 ms"), (90 * 10**9, "90 sec"), (7, "7 ns")):
        begins = time_ns - time_ns % length_ns
        assert column(f"time_bucket('{text}')", time_ns) == begins
    whole = time_ns - time_ns % 10**9
    assert column("time_bucket('90 sec', time)", time_ns) == whole - whole % (90 * 10**9)
    assert column("time_bucket('1500 ms', time)", time_ns) == whole - whole % (1500 * 10**6)


@pytest.mark.parametrize(
    ("term", "core"),
    [
        ("minute(time)", "time FLOOR_DIV 60"),
        ("second(time)", "time"),
        ("hour(timestamp)", "ts_to_int(timestamp) FLOOR_DIV 3600000000000"),
        ("time_bucket('10 sec')", "ts_to_int(timestamp) FLOOR_DIV 10000000000"),
        ("date_trunc('day', time_ns)", "time_ns FLOOR_DIV 86400000000000"),
        ("time/60*60", "time DIV 60"),
    ],
)
def test_groups_are_kept_by_the_number_of_the_bucket(term: str, core: str) -> None:
    """A group table keeps consecutive numbers apart in 16 bits; nanoseconds would need more."""
    made = query(f"SELECT t, srcIP, count(*) FROM TCP GROUP BY {term} AS t, srcIP")
    assert isinstance(made.root, Project)
    group = made.root.input
    assert isinstance(group, GroupBy)
    (key,) = (key for key in group.keys if key.name == group.epoch)
    assert show(key.expression) == core
    assert group.schema["t"].ordering.step == 1
    assert made.schema["t"].ordering.is_temporal


def test_the_finest_bucket_closes_the_groups() -> None:
    made = query("SELECT m, t, count(*) FROM TCP GROUP BY minute(time) AS m, time/10 AS t")
    assert isinstance(made.root, Project)
    assert isinstance(made.root.input, GroupBy)
    assert made.root.input.epoch == "t"
    assert made.schema["m"].ordering.is_temporal


def test_a_column_is_called_after_the_function() -> None:
    assert query(
        "SELECT minute(time), day(timestamp), time_bucket('10 sec') FROM TCP"
    ).schema.names == (
        "minute",
        "day",
        "time_bucket",
    )
    grouped = query("SELECT hour, hour(time), count(*) FROM TCP GROUP BY hour(time)")
    assert grouped.schema.names == ("hour", "hour_2", "cnt")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("time/60 AS tb", "hour(tb)"),
        ("minute(time) AS tb", "hour(tb)"),
        ("time AS tb", "minute(tb)"),
    ],
)
def test_a_column_of_another_query_keeps_its_unit(first: str, second: str) -> None:
    made = query(
        f"DEFINE {{ query_name 'q'; }} SELECT tb, count(*) AS n FROM TCP GROUP BY {first};"
        f"DEFINE {{ query_name 'r'; }} SELECT t, sum(n) FROM q GROUP BY {second} AS t"
    )
    assert made.schema["t"].ordering.is_temporal
    assert made.schema["t"].type is GsqlType.TIMESTAMP


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
