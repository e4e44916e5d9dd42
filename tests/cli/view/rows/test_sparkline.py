"""Sparklines, bars, and the earlier values of rows, against plain loops."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.cli.view.answers import TALKERS, answers, talkers

from gscope.cli.view.rows import sparkline as module
from gscope.cli.view.rows.history import History
from gscope.cli.view.rows.sparkline import RowSeries, bar, last_epochs, sparkline

if TYPE_CHECKING:
    import pytest


def test_blocks_are_relative_to_the_greatest() -> None:
    assert sparkline([0, 1, 7, 3.5, None]) == "▁▂█▅ "
    assert sparkline([0.0, 0.0]) == "▁▁"
    assert sparkline([-5.0, 2.0]) == "▁█"
    assert sparkline([None]) == " "
    assert sparkline([]) == ""
    assert sparkline([0, 9], "_#") == "_#"


def test_bars() -> None:
    assert bar(10, 10, 8, "#") == "########"
    assert bar(5, 10, 8, "#") == "####"
    assert bar(0.001, 10, 8, "#") == "#"
    assert [bar(value, 10, 8, "#") for value in (0, -3, None, float("nan"))] == [""] * 4


def test_silent_epochs_have_a_place_of_their_own() -> None:
    (answer,) = answers(TALKERS).values()
    history = History(answer)
    for minute in (0, 1, 5):
        history.add(talkers(minute, [("10.0.0.1", 1, minute + 1)]))
    latest = history.latest
    assert latest is not None
    found = last_epochs(history, latest, 10)
    assert [None if each is None else each.sums["bytes"] for each in found] == [
        1,
        2,
        None,
        None,
        None,
        6,
    ]
    assert [each is None for each in last_epochs(history, latest, 2)] == [True, False]


def test_values_of_rows_are_those_of_their_keys_in_each_epoch() -> None:
    draw = random.Random(3)
    (answer,) = answers(TALKERS).values()
    history = History(answer)
    values: list[dict[str, int]] = []
    for minute in range(12):
        hosts = draw.sample(range(60), 30)
        values.append({f"10.0.0.{host}": draw.randint(1, 999) for host in hosts})
        history.add(talkers(minute, [(host, 1, v) for host, v in values[-1].items()]))
    latest, series = history.latest, RowSeries()
    assert latest is not None
    for _ in range(2):
        keys = [(f"10.0.0.{host}",) for host in draw.sample(range(60), 10)]
        epochs = last_epochs(history, latest, 12)
        expected = [[float(each.get(key[0], 0)) for each in values] for key in keys]
        assert series.values(history, epochs, "bytes", keys) == expected
        # A second time from what was remembered.
        assert series.values(history, epochs, "bytes", keys) == expected


def test_what_cannot_be_searched_is_unknown_and_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    (answer,) = answers(TALKERS).values()
    history = History(answer, most_epochs=3)
    for minute in range(4):
        history.add(talkers(minute, [("10.0.0.1", 1, 5), ("10.0.0.2", 1, 6)]))
    latest = history.latest
    assert latest is not None
    keys = [("10.0.0.2",)]
    epochs = last_epochs(history, latest, 4)
    assert RowSeries().values(history, epochs, "bytes", keys) == [[None, 6.0, 6.0, 6.0]]
    monkeypatch.setattr(module, "MOST_COMPARED", 4)
    series = RowSeries()
    assert series.values(history, epochs, "bytes", keys) == [[None, None, 6.0, 6.0]]
    # The next picture searches on.
    assert series.values(history, epochs, "bytes", keys) == [[None, 6.0, 6.0, 6.0]]


def test_rows_that_come_later_count() -> None:
    (answer,) = answers(TALKERS).values()
    history, series = History(answer), RowSeries()
    history.add(talkers(0, [("10.0.0.1", 1, 5)]))
    latest = history.latest
    assert latest is not None
    keys = [("10.0.0.1",), ("10.0.0.2",)]
    assert series.values(history, [latest], "bytes", keys) == [[5.0], [0.0]]
    history.add(talkers(0, [("10.0.0.2", 1, 7)]))
    assert series.values(history, [latest], "bytes", keys) == [[5.0], [7.0]]


def test_a_row_has_0_in_a_silent_epoch() -> None:
    (answer,) = answers(TALKERS).values()
    history = History(answer)
    for minute in (0, 1, 3):
        history.add(talkers(minute, [("10.0.0.1", 1, 5)]))
    latest = history.latest
    assert latest is not None
    epochs = last_epochs(history, latest, 4)
    assert RowSeries().values(history, epochs, "bytes", [("10.0.0.1",)]) == [[5.0, 5.0, 0.0, 5.0]]
