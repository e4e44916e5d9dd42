"""Rows of a stream that is an answer: in order, and each once, however often the run is killed."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gscope.cli.delivery.checkpoint import StreamPosition
from gscope.cli.delivery.stream_rows import StreamDelivery
from gscope.queries.streams.messages import Batch, Extent

Row = tuple[int | None, int]
"""Its time and a number of its own."""


def table(rows: list[Row]) -> pa.Table:
    return pa.table({"time": pa.array([t for t, _ in rows], pa.int64()), "n": [n for _, n in rows]})


def take(outlet: StreamDelivery, message: list[Row] | int, sequence: int) -> None:
    if isinstance(message, int):
        outlet.raise_bound({"time": message})
    else:
        times = [time for time, _ in message if time is not None]
        extents = (Extent("time", min(times), max(times)),)
        outlet.add(Batch("s", sequence, "", len(message), 1, extents), lambda: table(message))
    outlet.next = sequence + 1


def rows_of(outlet: StreamDelivery) -> list[Row]:
    rows: list[Row] = []
    for each in outlet.let_go() or ():
        rows += zip(each["time"].to_pylist(), each["n"].to_pylist(), strict=True)
    return rows


@st.composite
def logs(draw: st.DrawFn) -> list[list[Row] | int]:
    """Batches and bounds; no row is below a bound that came before it."""
    bound, number = 0, 0
    messages: list[list[Row] | int] = []
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.booleans()):
            bound += draw(st.integers(0, 4))
            messages.append(bound)
        else:
            times = draw(st.lists(st.integers(bound, bound + 6), min_size=1, max_size=5))
            messages.append([(time, number + place) for place, time in enumerate(times)])
            number += len(times)
    return messages


@given(logs(), st.data())
def test_each_row_comes_once_and_in_order(log: list[list[Row] | int], data: st.DataObject) -> None:
    outlet = StreamDelivery("q", "time", StreamPosition())
    came: list[Row] = []
    while outlet.next < len(log):
        sequence = outlet.next
        take(outlet, log[sequence], sequence)
        if data.draw(st.booleans(), "let go"):
            came += rows_of(outlet)
            position = outlet.position
            assert position.cursor <= outlet.next <= position.seen
            if data.draw(st.integers(0, 3), "killed when 0") == 0:
                outlet = StreamDelivery("q", "time", position)
    outlet.has_ended = True
    came += rows_of(outlet)
    times = [time for time, _ in came if time is not None]
    assert times == sorted(times)
    assert came == sorted(came)  # rows of one time as they came
    assert sorted(n for _, n in came) == list(range(len(came)))
    assert len(came) == sum(len(each) for each in log if isinstance(each, list))
    assert outlet.position.cursor == outlet.next


def test_without_an_order_rows_go_as_they_come() -> None:
    outlet = StreamDelivery("q", None, StreamPosition())
    outlet.add(Batch("s", 0, "", 1, 1, ()), lambda: table([(5, 0)]))
    outlet.next = 1
    assert rows_of(outlet) == [(5, 0)]
    assert outlet.position == StreamPosition(1, 1, None)
    assert outlet.let_go() is None


def test_a_row_without_a_time_comes_once() -> None:
    extents = (Extent("time", 9, 9),)
    batch = Batch("s", 0, "", 2, 1, extents)
    rows = pa.table({"time": pa.array([None, 9], pa.int64()), "n": [0, 1]})
    outlet = StreamDelivery("q", "time", StreamPosition(), is_nullable=True)
    outlet.add(batch, lambda: rows)
    outlet.next = 1
    outlet.raise_bound({"time": 3})
    assert rows_of(outlet) == [(None, 0)]
    again = StreamDelivery("q", "time", outlet.position, is_nullable=True)
    again.add(batch, lambda: rows)
    again.has_ended = True
    assert rows_of(again) == [(9, 1)]


def test_batches_of_one_time_are_never_in_memory_together() -> None:
    read: list[int] = []
    outlet = StreamDelivery("q", "time", StreamPosition())
    for sequence in range(100):
        batch = Batch("s", sequence, "", 1, 1, (Extent("time", 7, 7),))

        def rows(sequence: int = sequence) -> pa.Table:
            read.append(sequence)
            return table([(7, sequence)])

        outlet.add(batch, rows)
    outlet.next = 100
    outlet.raise_bound({"time": 8})
    assert read == []
    for number, each in enumerate(outlet.let_go() or ()):
        assert each["n"].to_pylist() == [number]
        assert len(read) <= number + 2
    assert read == list(range(100))
