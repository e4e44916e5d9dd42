"""Points, silence and sums of plots against plain loops over the rows."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.cli.report.things import BEGAN, PACKETS, RATES, TOTALS, rows_of

from gscope.cli.report.series import MOST_LINES, MOST_POINTS, plots_of

if TYPE_CHECKING:
    from gscope.cli.report.contents import AnsweredRows
    from gscope.cli.report.series import Line, Plot


def plots(rows: AnsweredRows) -> dict[str, Plot]:
    return {plot.measure: plot for plot in plots_of(rows)}


def points(line: Line) -> dict[float, float | None]:
    """The points of a line by the seconds after ``BEGAN``; None is a gap."""
    seconds = [(time - BEGAN * 10**9) / 1e9 for time in line.times_ns.tolist()]
    assert seconds == sorted(set(seconds))
    values = [None if math.isnan(value) else value for value in line.values.tolist()]
    return dict(zip(seconds, values, strict=True))


def test_silence_is_zero_for_counts_and_sums_and_a_gap_for_others() -> None:
    columns: dict[str, Any] = {
        "second": [0, 1, 7, 9],
        "srcIP": ["10.0.0.1"] * 4,
        "packets": [3, 1, 2, 4],
        "bits": [800, 80, 160, 320],
        "mean": [33.3, 10.0, 10.0, 10.0],
    }
    found = plots(rows_of(RATES, columns))
    counted = {0: 3, 1: 1, 2: 0, 6: 0, 7: 2, 8: 0, 9: 4}
    assert points(found["packets"].lines[0]) == counted
    assert points(found["mean"].lines[0]) == {0: 33.3, 1: 10, 2: None, 7: 10, 8: None, 9: 10}
    assert found["packets"].notes == ("Epochs without packets are 0.",)
    assert found["mean"].notes == ("Gaps are epochs without a row.",)


@pytest.mark.parametrize(
    "clause", ["HAVING count(*) > 1", "ORDER BY packets DESC LIMIT 3", "HAVING avg(len) > 3"]
)
def test_silence_is_a_gap_where_groups_may_be_left_out(clause: str) -> None:
    columns: dict[str, Any] = {
        "second": [0, 5],
        "srcIP": ["10.0.0.1"] * 2,
        "packets": [3, 1],
        "bits": [1, 2],
        "mean": [1.0, 2.0],
    }
    found = plots(rows_of(f"{RATES} {clause}", columns))
    assert points(found["packets"].lines[0]) == {0: 3, 1: None, 5: 1}


def test_a_key_that_begins_late_or_ends_early_is_zero_there() -> None:
    columns: dict[str, Any] = {
        "second": [0, 4, 4, 9],
        "srcIP": ["10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.1"],
        "packets": [1, 1, 7, 1],
        "bits": [1] * 4,
        "mean": [1.0] * 4,
    }
    line = next(n for n in plots(rows_of(RATES, columns))["packets"].lines if n.label == "10.0.0.2")
    assert points(line) == {0: 0, 3: 0, 4: 7, 5: 0, 9: 0}


def many_keys(number: int) -> dict[str, list[Any]]:
    choose = random.Random(5)
    columns: dict[str, list[Any]] = defaultdict(list)
    for second in range(40):
        for key in choose.sample(range(number), number // 2):
            columns["second"].append(second)
            columns["srcIP"].append(f"10.0.{key // 256}.{key % 256}")
            columns["packets"].append(choose.randrange(1, 100) * (1 + 20 * (key < 10)))
            columns["bits"].append(choose.randrange(1, 1000))
            columns["mean"].append(choose.random() * 1500)
    return columns


def test_the_greatest_keys_have_lines_and_the_others_are_summed() -> None:
    columns = many_keys(300)
    totals: dict[str, int] = defaultdict(int)
    for key, packets in zip(columns["srcIP"], columns["packets"], strict=True):
        totals[str(key)] += packets
    greatest = sorted(totals, key=lambda key: -totals[key])[: MOST_LINES - 1]
    expected: dict[int, int] = defaultdict(int)
    for second, key, packets in zip(
        columns["second"], columns["srcIP"], columns["packets"], strict=True
    ):
        if key not in greatest:
            expected[second] += packets
    plot = plots(rows_of(RATES, columns))["packets"]
    *lines, rest = plot.lines
    assert [line.label for line in lines] == greatest
    assert rest.is_rest
    assert rest.label == "293 others"
    assert points(rest) == dict(expected)
    assert plot.notes[0] == "293 further values of srcIP are summed as one line."


def test_averages_are_never_summed() -> None:
    plot = plots(rows_of(RATES, many_keys(300)))["mean"]
    assert len(plot.lines) == MOST_LINES
    assert not any(line.is_rest for line in plot.lines)
    assert plot.notes[0].startswith("292 further values of srcIP are not drawn")


def test_a_long_line_keeps_the_extremes_of_every_stretch() -> None:
    choose = random.Random(7)
    number = 50_000
    values = [choose.randrange(1000) for _ in range(number)]
    columns: dict[str, Any] = {
        "second": list(range(number)),
        "srcIP": ["10.0.0.1"] * number,
        "packets": values,
        "bits": values,
        "mean": [float(value) for value in values],
    }
    plot = plots(rows_of(RATES, columns))["packets"]
    (line,) = plot.lines
    assert len(line.values) <= MOST_POINTS
    assert line.is_thinned
    assert f"Of {number:,} points, {len(line.values):,} are drawn" in plot.notes[0]
    stretches: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for second, value in enumerate(values):
        stretches[second * 300 * 10**9 // ((number - 1) * 10**9 + 1)].append((second, value))
    expected: dict[float, float | None] = {}
    for part in stretches.values():
        least = min(part, key=lambda each: each[1])
        greatest = max(part, key=lambda each: each[1])
        expected |= dict(sorted([part[0], least, greatest, part[-1]]))
    assert points(line) == expected


def test_rows_that_are_not_kept_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gscope.cli.report.contents.MOST_ROWS", 2)
    columns: dict[str, Any] = {
        "second": [0, 1, 2, 3, 4],
        "srcIP": ["10.0.0.1"] * 5,
        "packets": [3, 1, 2, 9, 9],
        "bits": [1] * 5,
        "mean": [1.0] * 5,
    }
    rows = rows_of(RATES, columns)
    plot = plots(rows)["packets"]
    assert points(plot.lines[0]) == {0: 3, 1: 1}
    assert plot.notes == ("The last 3 rows are not drawn.",)
    assert (rows.total, rows.kept) == (5, 2)


def test_packets_are_points_of_sizes_only() -> None:
    columns: dict[str, Any] = {
        "timestamp": [0.25, 0.5, 0.5],
        "srcIP": ["10.0.0.1"] * 3,
        "srcPort": [80, 443, 80],
        "len": [60, 1500, 90],
    }
    found = plots(rows_of(PACKETS, columns))
    assert list(found) == ["len"]
    assert found["len"].is_scattered
    assert sorted(found["len"].lines[0].values.tolist()) == [60, 90, 1500]


def test_lists_and_empty_answers_have_no_plot() -> None:
    assert plots_of(rows_of(TOTALS, {"srcIP": ["10.0.0.1"], "packets": [1], "mean": [1.0]})) == ()
    empty: dict[str, Any] = {"second": [], "srcIP": [], "packets": [], "bits": [], "mean": []}
    assert plots_of(rows_of(RATES, empty)) == ()


def test_null_and_infinite_values_are_no_points() -> None:
    columns: dict[str, Any] = {
        "second": [0, None, 2],
        "srcIP": ["10.0.0.1", "10.0.0.1", None],
        "packets": [1, 2, 3],
        "bits": [1, 2, 3],
        "mean": [math.inf, 2.0, 5.0],
    }
    found = plots(rows_of(RATES, columns))
    assert {line.label for line in found["packets"].lines} == {"10.0.0.1", "NULL"}
    assert [line.values.tolist() for line in found["mean"].lines] == [[5.0]]
    assert np.isfinite(found["packets"].lines[0].values).all()


def test_a_key_has_one_colour_in_all_plots_of_an_answer() -> None:
    for number in (7, 300):
        found = plots(rows_of(RATES, many_keys(number)))
        seen: dict[str, int] = {}
        for plot in found.values():
            lines = [line for line in plot.lines if not line.is_rest]
            assert len({line.colour for line in lines}) == len(lines)
            assert all(0 <= line.colour < MOST_LINES for line in lines)
            # What a later plot adds may take a colour that another key has in an earlier one.
            taken = [seen[line.label] for line in lines if line.label in seen]
            for line in lines:
                colour = seen.setdefault(line.label, line.colour)
                assert colour == line.colour or taken.count(colour) > 1
        assert len(seen) == number or number == 300


def test_lines_that_end_early_are_explained_where_rows_may_be_missing() -> None:
    columns: dict[str, Any] = {
        "second": [0, 1, 1],
        "srcIP": ["10.0.0.1", "10.0.0.1", "10.0.0.2"],
        "packets": [3, 1, 2],
        "bits": [1, 2, 3],
        "mean": [1.0, 2.0, 3.0],
    }
    found = plots(rows_of(f"{RATES} ORDER BY packets DESC LIMIT 3", columns))
    assert found["packets"].notes == ("Gaps are epochs without a row.",)
