"""Times in tables against Python's calendar."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.cli.config.time_style import TimeStyle
from gscope.cli.sinks.table_times import time_formatter
from gscope.queries.expressions.schema import ClockUnit, ColumnSchema
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Iterator

SECOND = 10**9
MINUTE = 60 * SECOND
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
ANY_TIME = st.integers(-(1 << 63), (1 << 63) - 1)


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def texts(column: ColumnSchema, values: list[int | None], style: TimeStyle) -> list[str | None]:
    shown = time_formatter(column, style)
    assert shown is not None
    kind = pa.timestamp("ns") if column.type is GsqlType.TIMESTAMP else pa.int64()
    found: list[str | None] = shown(pa.array(values, kind)).to_pylist()
    return found


def timestamp(grain_ns: int) -> ColumnSchema:
    return ColumnSchema("t", GsqlType.TIMESTAMP, True, clock=ClockUnit(1, grain_ns))


def integer(unit_ns: int) -> ColumnSchema:
    return ColumnSchema("tb", GsqlType.INT, True, clock=ClockUnit(unit_ns, unit_ns))


def test_whole_seconds_have_no_decimals() -> None:
    begin = 1_699_999_200 * SECOND
    assert texts(timestamp(MINUTE), [begin, None], TimeStyle.UTC) == ["2023-11-14 22:00:00Z", None]
    assert texts(timestamp(MINUTE), [begin], TimeStyle.LOCAL) == ["2023-11-14 23:00:00+01:00"]
    assert texts(timestamp(MINUTE), [begin], TimeStyle.EPOCH) == ["1699999200"]
    assert texts(integer(MINUTE), [28_333_320, None], TimeStyle.UTC) == [
        "2023-11-14 22:00:00Z",
        None,
    ]


def test_a_column_has_as_many_decimals_as_it_needs_and_never_fewer_than_before() -> None:
    shown = time_formatter(timestamp(1), TimeStyle.UTC)
    assert shown is not None
    values = (1_500_000, SECOND, SECOND + 1, SECOND)
    assert [shown(pa.array([value], pa.timestamp("ns")))[0].as_py() for value in values] == [
        "1970-01-01 00:00:00.001500Z",
        "1970-01-01 00:00:01.000000Z",
        "1970-01-01 00:00:01.000000001Z",
        "1970-01-01 00:00:01.000000000Z",
    ]
    assert texts(timestamp(250 * 10**6), [SECOND // 4], TimeStyle.UTC) == [
        "1970-01-01 00:00:00.250Z"
    ]


def test_offsets_distinguish_the_hours_that_a_clock_shows_twice() -> None:
    begin = int(datetime(2023, 10, 29, 0, 30, tzinfo=UTC).timestamp())
    assert texts(integer(SECOND), [begin, begin + 3600], TimeStyle.LOCAL) == [
        "2023-10-29 02:30:00+02:00",
        "2023-10-29 02:30:00+01:00",
    ]


def test_an_integer_that_is_no_time_after_all_is_shown_as_a_number() -> None:
    found = texts(integer(MINUTE), [-1, (1 << 63) - 1, 0], TimeStyle.UTC)
    assert found == ["-1", str((1 << 63) - 1), "1970-01-01 00:00:00Z"]


def test_columns_that_are_shown_as_computed_have_no_formatter() -> None:
    assert time_formatter(integer(MINUTE), TimeStyle.EPOCH) is None
    assert time_formatter(ColumnSchema("n", GsqlType.INT), TimeStyle.UTC) is None
    assert time_formatter(ColumnSchema("x", GsqlType.FLOAT), TimeStyle.LOCAL) is None


@settings(deadline=None, max_examples=200)
@given(ANY_TIME)
def test_the_text_stands_for_the_same_instant(time_ns: int) -> None:
    whole, rest = divmod(time_ns, SECOND)
    (utc,) = texts(timestamp(1), [time_ns], TimeStyle.UTC)
    (local,) = texts(timestamp(1), [time_ns], TimeStyle.LOCAL)
    (epoch,) = texts(timestamp(1), [time_ns], TimeStyle.EPOCH)
    assert utc is not None
    assert local is not None
    moment = EPOCH + timedelta(seconds=whole)
    fraction = f".{rest:09d}" if rest % 1000 else f".{rest // 1000:06d}"
    assert utc == f"{moment:%Y-%m-%d %H:%M:%S}{fraction}Z"
    # The offset, as the standard library prints it, leads back to the same second.
    assert local.startswith(f"{moment.astimezone(BERLIN):%Y-%m-%d %H:%M:%S}{fraction}")
    back = datetime.fromisoformat(local.replace(fraction, "", 1))
    assert back == moment
    assert Decimal(str(epoch)) * SECOND == time_ns
