"""The epochs that are kept, against plain lists."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
from tests.cli.view.answers import TALKERS, WHOLE, answers, of_minute, talkers

from gscope.cli.view.rows import history as module
from gscope.cli.view.rows.history import History

if TYPE_CHECKING:
    import pytest


def history_of(text: str = TALKERS, **bounds: int) -> History:
    (answer,) = answers(text).values()
    return History(answer, **bounds)


def test_rows_divide_into_epochs_however_they_are_delivered() -> None:
    draw = random.Random(7)
    expected: list[tuple[int, list[int]]] = []
    rows: list[tuple[int, int]] = []
    minute = 0
    for _ in range(40):
        minute += draw.randint(1, 3)
        values = [draw.randint(0, 99) for _ in range(draw.randint(1, 6))]
        expected.append((minute, values))
        rows += [(minute, value) for value in values]
    whole = pa.concat_tables(talkers(m, [("10.0.0.1", 1, value)]) for m, value in rows)
    history, at = history_of(), 0
    while at < len(rows):
        count = draw.randint(0, 9)
        history.add(whole.slice(at, count))
        at += count
    found = []
    for epoch in history.epochs:
        assert epoch.table is not None
        assert epoch.key is not None
        found.append((epoch.key, epoch.table["bytes"].to_pylist()))
        assert epoch.sums == {"packets": epoch.rows, "bytes": sum(found[-1][1])}
    first = found[0][0] - expected[0][0]
    assert [(key - first, values) for key, values in found] == expected
    assert history.rows == len(rows)
    assert history.step == 1
    assert history.epochs[0].label.endswith("Z")


def test_rows_of_old_epochs_are_let_go_and_their_sums_stay() -> None:
    history = history_of(most_epochs=3)
    for minute in range(10):
        history.add(talkers(minute, [("10.0.0.1", 1, minute), ("10.0.0.2", 1, minute)]))
    assert [epoch.table is not None for epoch in history.epochs] == [False] * 7 + [True] * 3
    assert [epoch.sums["bytes"] for epoch in history.epochs] == [2 * m for m in range(10)]
    assert history.find(6) is None
    assert history.find(7) is history.epochs[7]
    assert history.find(10) is None


def test_the_bound_in_rows_lets_old_epochs_go_and_then_cuts_the_latest() -> None:
    history = history_of(most_rows=5)
    row = ("10.0.0.1", 1, 1)
    history.add(talkers(0, [row] * 3))
    history.add(talkers(1, [row] * 2))
    assert [epoch.kept for epoch in history.epochs] == [3, 2]
    history.add(talkers(2, [row]))
    assert [epoch.kept for epoch in history.epochs] == [0, 2, 1]
    history.add(talkers(3, [row] * 4))
    history.add(talkers(3, [row] * 4))
    latest = history.epochs[-1]
    assert [epoch.kept for epoch in history.epochs] == [0, 0, 0, 5]
    assert (latest.rows, latest.sums["bytes"]) == (8, 8)


def test_only_the_last_of_many_epochs_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SUMS", 4)
    history = history_of(most_epochs=4)
    row = ("10.0.0.1", 1, 1)
    history.add(pa.concat_tables(talkers(minute, [row]) for minute in range(9)))
    assert [epoch.number for epoch in history.epochs] == [5, 6, 7, 8]
    assert history.rows == 9


def test_null_is_an_epoch_of_its_own() -> None:
    history = history_of("SELECT tb, count(*) AS n FROM IP GROUP BY time/60 AS tb")
    for value in (None, 5):
        history.add(pa.table({"tb": pa.array([value], pa.int64()), "n": pa.array([1])}))
    assert [epoch.key for epoch in history.epochs] == [None, 5]


def test_an_answer_without_time_is_one_epoch() -> None:
    history = history_of(WHOLE)
    table = pa.table({"srcIP": ["10.0.0.1"], "bytes": [4]})
    history.add(table)
    history.add(table)
    (epoch,) = history.epochs
    assert (epoch.rows, epoch.label, epoch.key) == (2, "", None)


def test_no_rows_are_no_epoch() -> None:
    history = history_of()
    history.add(of_minute(0, talkers(0, []).drop_columns("minute").to_pydict()).slice(0, 0))
    assert history.latest is None
