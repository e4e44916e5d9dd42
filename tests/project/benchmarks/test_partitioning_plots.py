"""Plots of D5 to D8 in the repository show the points of the CSV files beside them.

The SVG files are read as XML, so the tests need no matplotlib. Positions are compared with values
by one linear scale for each panel, which the numbers at its axis have to agree with.
"""

from __future__ import annotations

import csv
import math
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from tests.support.requirements import needs_module

if TYPE_CHECKING:
    from collections.abc import Iterable

TOP = Path(__file__).parents[3]
FOLDER = TOP / "benchmarks" / "partitioning"
EXPERIMENTS = ("D5", "D6", "D7", "D8")
ORDERS = ("set_orders-2", "set_orders-4")
MAX_BYTES = 100_000

LOAD, RECEIVED, LOAD_SHARE, RECEIVED_SHARE = range(4)
"""The panels, in the order in which they are drawn."""

NEAR = 0.02
"""Points of 1/72 inch; values in the CSV files have six digits."""

Row = dict[str, str]
Point = tuple[float, float]
_SVG = "{http://www.w3.org/2000/svg}"


def rows_of(name: str) -> list[Row]:
    with (FOLDER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def drawing(name: str) -> ET.Element:
    return ET.parse(FOLDER / f"{name}.svg").getroot()


def points_of(drawn: ET.Element, gid: str) -> list[Point]:
    """Return where the markers of a curve are; y grows downwards."""
    (group,) = [each for each in drawn.iter(f"{_SVG}g") if each.get("id") == gid]
    return [(float(e.attrib["x"]), float(e.attrib["y"])) for e in group.iter(f"{_SVG}use")]


def texts_of(drawn: ET.Element) -> list[str]:
    return ["".join(each.itertext()) for each in drawn.iter(f"{_SVG}text")]


def value(panel: int, row: Row, naive: Row) -> float:
    column = "load" if panel in (LOAD, LOAD_SHARE) else "received_bytes_s"
    found = float(row[column])
    if panel in (LOAD_SHARE, RECEIVED_SHARE):
        return found / float(naive[column])
    return found * 100 if panel == LOAD else found / 1000


def ensure_linear(pairs: Iterable[Point]) -> None:
    """Check that pairs of value and position are on one line."""
    found = sorted(pairs)
    (low, at_low), (high, at_high) = found[0], found[-1]
    for known, at in found:
        expected = at_low + (at_high - at_low) * (known - low) / (high - low)
        assert at == pytest.approx(expected, abs=NEAR), known


def ticks_of(axes: ET.Element) -> list[Point]:
    """Return the numbers at the axis of values, with their positions."""
    ticks = [e for e in axes.iter(f"{_SVG}g") if e.get("id", "").startswith("ytick_")]
    return [
        (
            float("".join(each.itertext()).strip().replace("\N{MINUS SIGN}", "-")),
            float(next(each.iter(f"{_SVG}use")).attrib["y"]),
        )
        for each in ticks
    ]


@pytest.mark.parametrize("panel", [LOAD, RECEIVED, LOAD_SHARE, RECEIVED_SHARE])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_panel_shows_the_rows_of_the_file(name: str, panel: int) -> None:
    drawn, rows = drawing(name), rows_of(name)
    naive = {row["hosts"]: row for row in rows if row["curve"] == "naive"}
    scale = math.log10 if panel in (RECEIVED, RECEIVED_SHARE) else float
    values: list[Point] = []
    for kind in ("measured", "simulated"):
        hosts: list[Point] = []
        for number, curve in enumerate(dict.fromkeys(row["curve"] for row in rows)):
            if curve == "naive" and panel in (LOAD_SHARE, RECEIVED_SHARE):
                continue
            own = [
                row
                for row in rows
                if row["curve"] == curve
                and row["is_simulated"] == str(kind == "simulated")
                and (panel == LOAD or row["hosts"] != "1")
            ]
            points = points_of(drawn, f"{panel}-{number}-{kind}")
            for row, (x, y) in zip(own, points, strict=True):
                hosts.append((float(row["hosts"]), x))
                values.append((scale(value(panel, row, naive[row["hosts"]])), y))
        ensure_linear(hosts)
    axes = [e for e in drawn.iter(f"{_SVG}g") if e.get("id") == f"axes_{2 * panel + 1}"]
    ticks = [(scale(number), y) for number, y in ticks_of(axes[0])]
    assert len(ticks) > 2
    assert all(one[1] > other[1] for one, other in pairwise(sorted(ticks)))
    ensure_linear(values + ticks)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_curves_and_what_is_simulated_are_labelled(name: str) -> None:
    texts = texts_of(drawing(name))
    assert texts.count("measured") == texts.count("simulated") == 4
    assert {row["curve"] for row in rows_of(name)} <= set(texts)
    assert any(text.startswith("Published: ") for text in texts)


def test_both_ways_to_count_the_join_of_d7_are_plotted() -> None:
    texts = texts_of(drawing("D7"))
    assert "chosen set, join central (as published)" in texts
    assert "chosen set, join on hosts" in texts


@pytest.mark.parametrize("name", ORDERS)
def test_costs_of_sets_are_those_of_the_file(name: str) -> None:
    drawn, rows = drawing(name), rows_of(name)
    costs: list[Point] = []
    for number, queries in enumerate(dict.fromkeys(row["queries"] for row in rows)):
        own = [row for row in rows if row["queries"] == queries]
        for kind in ("predicted", "measured"):
            points = points_of(drawn, f"{number}-{kind}")
            for row, (x, _) in zip(own, points, strict=True):
                costs.append((math.log10(float(row[f"{kind}_total"])), x))
            assert [y for _, y in points] == sorted(y for _, y in points)
    ensure_linear(costs)


@pytest.mark.parametrize("name", [*EXPERIMENTS, *ORDERS])
def test_a_plot_is_small_and_referenced(name: str) -> None:
    assert (FOLDER / f"{name}.svg").stat().st_size < MAX_BYTES
    for page in ("RESULTS.md", "README.md"):
        assert f"(partitioning/{name}.svg)" in (TOP / "benchmarks" / page).read_text(
            encoding="utf-8"
        )


@pytest.mark.bench
@needs_module("matplotlib")
def test_plots_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    from benchmarks.partitioning.plots import plot_all

    made = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        made.append({path.name: path.read_bytes() for path in plot_all(folder)})
    assert made[0] == made[1]
    assert set(made[0]) == {f"{name}.svg" for name in (*EXPERIMENTS, *ORDERS)}
    assert all(b"<dc:date>" not in data for data in made[0].values())
