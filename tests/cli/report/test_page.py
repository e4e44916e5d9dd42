"""Pages as Chromium shows them.

Without complaints, without requests, with the values of the rows.
"""

from __future__ import annotations

import itertools
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.cli.report.things import (
    BEGAN,
    NAMES,
    PACKETS,
    RATES,
    TOTALS,
    report_of,
    rows_of,
    written,
)
from tests.support.requirements import needs

from gscope.cli.config.time_style import TimeStyle
from gscope.cli.report.plot import COLOURS, REST_COLOUR, WIDE, svg_in_page
from gscope.cli.report.series import plots_of
from gscope.cli.report.tables import MOST_SHOWN

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.report.chromium import Chromium

pytestmark = needs("chromium")

HOSTILE = (
    "<script>document.title='taken'</script>",
    "</script><img src=x onerror=document.title='taken'>",
    "</style><style>*{display:none}</style>",
    "'\"--><svg onload=document.title='taken'>",
    "javascript:alert(1)",
    "{{constructor.constructor('return 1')()}}",
    "a\u2028b\u2029c",
    "left\u202eright\u2066x",
    "datum.v",
    "line\nbreak\0nul",
    "&lt;b&gt;",
    "http://192.0.2.1/x.png",
)

CELLS = """[...document.querySelectorAll("table.rows tbody tr")].map(
  (row) => [...row.cells].map((cell) => cell.dataset.v ?? cell.textContent))"""
SHOWN = """[...document.querySelectorAll("table.rows tbody tr")].filter((row) => !row.hidden)
  .map((row) => row.cells[0].textContent)"""


def data(browser: Chromium) -> list[dict[str, Any]]:
    """What the script of the page knows of each plot."""
    found: list[dict[str, Any]] = browser.value(
        "[...document.querySelectorAll('figure script')].map((s) => JSON.parse(s.textContent))"
    )
    return found


def click(browser: Chromium, head: int) -> None:
    browser.value(f"document.querySelectorAll('table.rows th button')[{head}].click()")


def test_values_in_the_page_are_those_of_the_rows(browser: Chromium, tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "second": [0, 0, 1],
        "srcIP": ["10.0.0.1", "2001:db8::1", "10.0.0.1"],
        "packets": [1_234_567, 2, (1 << 53) + 1],
        "bits": [8, 16, 24],
        "mean": [1 / 3, 1e-9, None],
    }
    browser.open(written(report_of(rows_of(RATES, columns)), tmp_path / "r.html"))
    assert browser.complaints == []
    assert browser.value(CELLS) == [
        ["2023-11-14 22:14:00Z", "10.0.0.1", "1234567", "8", repr(1 / 3)],
        ["2023-11-14 22:14:00Z", "2001:db8::1", "2", "16", "1e-9"],
        ["2023-11-14 22:14:01Z", "10.0.0.1", "9007199254740993", "24", "NULL"],
    ]
    bits = data(browser)[1]
    assert bits["times"] == ["2023-11-14 22:14:00Z", "2023-11-14 22:14:01Z"]
    lines = {line["label"]: dict(zip(line["i"], line["v"], strict=True)) for line in bits["lines"]}
    assert lines == {"10.0.0.1": {0: 8, 1: 24}, "2001:db8::1": {0: 16, 1: 0}}


def test_lines_are_drawn_where_their_values_are(browser: Chromium, tmp_path: Path) -> None:
    seconds = list(range(0, 50, 2))
    columns: dict[str, Any] = {
        "second": seconds,
        "srcIP": ["10.0.0.1"] * 25,
        "packets": [(7 * n) % 23 for n in range(25)],
        "bits": [1] * 25,
        "mean": [1.0] * 25,
    }
    browser.open(written(report_of(rows_of(RATES, columns)), tmp_path / "r.html"))
    (path,) = browser.value(
        "[...document.querySelectorAll('#p1-1 .wide .mark-line path')]"
        ".map((p) => p.getAttribute('d'))"
    )
    points = [tuple(map(float, each)) for each in re.findall(r"(-?[\d.]+),(-?[\d.]+)", path)]
    expected = dict(zip(seconds, columns["packets"], strict=True))
    assert len(points) == 49
    lines, texts = browser.value(
        "['.role-axis-grid line', '.role-axis-label text'].map((which) =>"
        " [...document.querySelectorAll(`#p1-1 .wide ${which}`)].map((each) => [each.textContent,"
        " each.getCTM().f - each.closest('svg').querySelector('.root').getCTM().f]))"
    )
    numbers = [int(text) for text, _ in texts if re.fullmatch(r"\d+", text)]
    heights = dict(zip(numbers, sorted((y for _, y in lines), reverse=True), strict=True))
    assert len(heights) >= 4
    assert min(heights) == 0
    slope = (heights[max(heights)] - heights[0]) / max(heights)
    for x, y in points:
        second = x / 880 * 48
        assert second == pytest.approx(round(second), abs=0.01)
        assert (y - heights[0]) / slope == pytest.approx(expected.get(round(second), 0), abs=0.08)


@pytest.mark.parametrize(
    ("greatest", "expected"),
    [
        (0.002, ["0", "0.001", "0.002"]),
        (1, ["0", "1"]),
        (1500, ["0", "1,000"]),
        (2_000_000, ["0", "1M", "2M"]),
    ],
)
def test_numbers_of_the_vertical_axis_are_readable(greatest: float, expected: list[str]) -> None:
    columns: dict[str, Any] = {
        "second": [0, 1],
        "srcIP": ["10.0.0.1"] * 2,
        "packets": [1, 1],
        "bits": [1, 1],
        "mean": [0.0, float(greatest)],
    }
    plot = plots_of(rows_of(RATES, columns))[2]
    text = svg_in_page(plot, TimeStyle.UTC, WIDE)
    shown = re.findall(r">([\d.,]+[kMG]?)</text>", text)
    assert set(expected) <= set(shown)
    assert len(set(shown)) == len(shown) <= 7


def test_hostile_names_stay_text(browser: Chromium, tmp_path: Path) -> None:
    half = len(HOSTILE) // 2
    answers = [
        rows_of(NAMES, {"second": [0] * half, "name": names, "questions": list(range(1, half + 1))})
        for names in (HOSTILE[:half], HOSTILE[half:])
    ]
    report = report_of(*answers, title=" ".join(HOSTILE), losses=HOSTILE)
    path = written(report, tmp_path / "r.html")
    text = path.read_text(encoding="utf-8")
    assert not set("\u2028\u2029\u202e\u2066\0") & set(text)
    browser.open(path)
    assert browser.complaints == []
    assert browser.requests == [path.as_uri()]
    strange = "document.querySelectorAll('img, iframe, object, svg svg, a[href^=java]').length"
    assert browser.value(strange) == 0
    assert browser.value("document.querySelectorAll('script:not([type])').length") == 1
    assert browser.value("document.querySelectorAll('style').length") == 1
    shown = [
        "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in name) for name in HOSTILE
    ]
    assert browser.value("document.title") == " ".join(shown)
    assert browser.value("document.querySelector('h1').textContent") == " ".join(shown)
    assert [row[1] for row in browser.value(CELLS)] == shown
    for what, expected in ((".losses li", shown), (".legend li", sorted(shown))):
        script = f"[...document.querySelectorAll({what!r})].map((each) => each.textContent)"
        found = browser.value(script)
        assert (found if what == ".losses li" else sorted(found)) == expected
    labels = [line["label"] for plot in data(browser) for line in plot["lines"]]
    assert sorted(labels) == sorted(shown)


def test_the_policy_stops_what_is_not_the_page_s(browser: Chromium, tmp_path: Path) -> None:
    report = report_of(rows_of(TOTALS, {"srcIP": ["10.0.0.1"], "packets": [1], "mean": [1.0]}))
    path = written(report, tmp_path / "r.html")
    text = path.read_text(encoding="utf-8")
    planted = (
        "<script>document.title='taken'</script><p style='color:red' onclick='x()'>"
        "<img src='https://192.0.2.1/x.png'></p><style>p{display:none}</style></main>"
    )
    path.write_text(text.replace("</main>", planted), encoding="utf-8")
    browser.open(path)
    assert browser.value("document.title") == "Report"
    assert browser.requests == [path.as_uri()]
    refused = " ".join(browser.complaints)
    for what in ("script", "style", "image"):
        assert re.search(rf"{what}\b.*Content Security Policy", refused, re.I), what


def test_a_page_without_its_script_shows_everything(browser: Chromium, tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "second": [0, 1],
        "name": ["a.example", "b.example"],
        "questions": [1, 2],
    }
    path = written(report_of(rows_of(NAMES, columns)), tmp_path / "r.html")
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(path)
        assert [row[1:] for row in browser.value(CELLS)] == [["a.example", "1"], ["b.example", "2"]]
        assert browser.value("document.querySelectorAll('.wide .mark-line path').length") == 2
        assert browser.value("document.querySelectorAll('button, input').length") == 0
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_local_times_are_named_as_such(
    browser: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    columns: dict[str, Any] = {"second": [0, 1], "name": ["a.example"] * 2, "questions": [1, 2]}
    report = report_of(rows_of(NAMES, columns, TimeStyle.LOCAL))
    report = replace(report, facts=replace(report.facts, time_style=TimeStyle.LOCAL))
    path = written(report, tmp_path / "r.html")
    monkeypatch.undo()
    time.tzset()
    browser.open(path)
    heads = browser.value("[...document.querySelectorAll('dd')].map((each) => each.textContent)")
    assert "local time, with its offset from UTC" in heads
    assert browser.value(CELLS)[0][0] == "2023-11-15 03:44:00+05:30"
    assert data(browser)[0]["times"][1] == "2023-11-15 03:44:01+05:30"
    texts = browser.value("[...document.querySelectorAll('.wide text')].map((t) => t.textContent)")
    assert {"2023-11-15, UTC+05:30", "03:44:00.000", "03:44:01.000"} <= set(texts)


def test_tables_are_whole_on_paper(browser: Chromium, tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "srcIP": [f"2001:db8:1111:2222:3333:4444:5555:{n:04x}" for n in range(60)],
        "packets": list(range(60)),
        "mean": [1 / 3] * 60,
    }
    rows = rows_of(TOTALS, columns)
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        browser.open(written(report_of(rows), tmp_path / "r.html"), width=500)
        frame = "document.querySelector('.answer .scroll')"
        assert browser.value(f"{frame}.scrollHeight - {frame}.clientHeight") == 0
        assert browser.value("document.documentElement.scrollWidth") <= 500
        hidden = "[...document.querySelectorAll('.filter')].some((e) => e.getClientRects().length)"
        assert browser.value(hidden) is False
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


def test_columns_are_sorted_by_a_click(browser: Chromium, tmp_path: Path) -> None:
    addresses = ["10.0.0.9", "10.0.0.10", "2001:db8::2", "9.255.0.1", "2001:db8::10"]
    columns: dict[str, Any] = {
        "srcIP": addresses,
        "packets": [5, 40, 300, (1 << 60) + 1, 1 << 60],
        "mean": [2.5, None, 10.0, 1e-7, 9.0],
    }
    browser.open(written(report_of(rows_of(TOTALS, columns)), tmp_path / "r.html"))
    by_packets = [addresses[n] for n in (3, 4, 2, 1, 0)]
    assert browser.value(SHOWN) == by_packets
    click(browser, 1)
    assert browser.value(SHOWN) == by_packets
    click(browser, 1)
    assert browser.value(SHOWN) == by_packets[::-1]
    click(browser, 0)
    assert browser.value(SHOWN) == ["9.255.0.1", "10.0.0.9", "10.0.0.10", *addresses[2::2]]
    click(browser, 2)
    assert browser.value(SHOWN) == [addresses[n] for n in (2, 4, 0, 3, 1)]
    sorts = browser.value(
        "[...document.querySelectorAll('table.rows th')].map((each) => each.ariaSort)"
    )
    assert sorts == [None, None, "descending"]
    assert browser.complaints == []


def test_the_filter_hides_rows_and_counts_the_others(browser: Chromium, tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "srcIP": ["10.0.0.1", "10.0.0.2", "10.1.0.2"],
        "packets": [1, 2, 3],
        "mean": [1.0] * 3,
    }
    browser.open(written(report_of(rows_of(TOTALS, columns)), tmp_path / "r.html"))
    browser.value("document.querySelector('.filter input').focus()")
    browser.call("Input.insertText", text="10.0. .2")
    assert browser.value(SHOWN) == ["10.0.0.2"]
    assert browser.value("document.querySelector('.filter span').textContent") == "1 of 3 rows"


def test_keys_and_the_pointer_read_points_out(browser: Chromium, tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "second": [0, 5, 10],
        "srcIP": ["10.0.0.1"] * 3,
        "packets": [3, 4, 5],
        "bits": [1000, 2000, 3000],
        "mean": [1.5, 2.5, 3.5],
    }
    browser.open(written(report_of(rows_of(RATES, columns)), tmp_path / "r.html"))
    readout = "document.querySelector('#p1-3 .readout').textContent"
    browser.value("document.querySelector('#p1-3').focus()")
    for key, shown in (("End", "10Z: 3.5"), ("ArrowLeft", "05Z: 2.5"), ("Home", "00Z: 1.5")):
        browser.press(key)
        assert browser.value(readout) == f"2023-11-14 22:14:{shown}"
    box = browser.value(
        "(() => { document.querySelector('#p1-3').scrollIntoView();"
        " const b ="
        " document.querySelector('#p1-3 .wide .root .background').getBoundingClientRect();"
        " return [b.left, b.top, b.width, b.height]; })()"
    )
    browser.point(box[0] + box[2] * 0.52, box[1] + box[3] / 2)
    assert browser.value(readout) == "2023-11-14 22:14:05Z: 2.5"
    left = browser.value("document.querySelector('#p1-3 .pointer').getBoundingClientRect().left")
    assert left == pytest.approx(box[0] + box[2] / 2, abs=1)


LABELS = """[...document.querySelectorAll("figure svg")].filter((s) => s.getClientRects().length).map(
  (s) => [...s.querySelectorAll(".role-axis-label text")]
    .filter((t) => t.getAttribute("opacity") !== "0" && t.textContent)
    .map((t) => { const b = t.getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]; }))"""  # noqa: E501


def overlaps(boxes: list[tuple[float, ...]]) -> int:
    """How many pairs of labels share a place; lines of text may touch."""
    return sum(
        one[0] < other[1] and other[0] < one[1] and one[2] < other[3] - 4 and other[2] < one[3] - 4
        for one, other in itertools.combinations(boxes, 2)
    )


def test_wide_and_narrow_windows_have_plots_of_their_own(browser: Chromium, tmp_path: Path) -> None:
    name = "2001:db8:1111:2222:3333:4444:5555:6666"
    spans = [0.003, 0.7, 1, 1.3, 9, 75, 500, 3_000, 50_000, 200_000, 5_000_000]
    answers = [
        rows_of(
            RATES,
            {
                "second": [0, span],
                "srcIP": [name] * 2,
                "packets": [3, 4],
                "bits": [1 << 40, 1 << 50],
                "mean": [1e-3, 2.5],
            },
        )
        for span in spans
    ]
    path = written(report_of(*answers, title="x" * 200), tmp_path / "r.html")
    for width, shown in ((1280, "wide"), (400, "narrow")):
        browser.open(path, width=width)
        visible = browser.value(
            "[...document.querySelectorAll('figure svg')].filter((s) => s.getClientRects().length)"
            ".map((s) => s.parentElement.className)"
        )
        assert visible == [shown] * 3 * len(spans)
        assert browser.value("document.documentElement.scrollWidth") <= width
        found = browser.value(LABELS)
        assert [overlaps(boxes) for boxes in found] == [0] * len(found)
        assert min(map(len, found)) >= 6


def test_every_control_has_a_name_and_every_plot_a_description(
    browser: Chromium, tmp_path: Path
) -> None:
    columns: dict[str, Any] = {"second": [0], "name": ["www.example"], "questions": [7]}
    browser.open(
        written(report_of(rows_of(NAMES, columns), rows_of(NAMES, columns)), tmp_path / "r.html")
    )
    browser.call("Accessibility.enable")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"]
    ]
    for role in ("button", "link", "searchbox", "image", "figure", "region"):
        names = [name for each, name in named if each == role]
        assert all(names), role
    assert (
        "image",
        "questions over time, at 2023-11-14 22:14:00Z; the greatest value is 7",
    ) in named
    assert sum(role == "columnheader" for role, _ in named) == 6


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_and_text_stand_out_from_the_background(
    browser: Chromium, tmp_path: Path, scheme: str
) -> None:
    columns: dict[str, Any] = {"second": [0], "name": ["www.example"], "questions": [7]}
    browser.prefer(scheme)
    browser.open(written(report_of(rows_of(NAMES, columns)), tmp_path / "r.html"))

    def hexadecimal(script: str) -> str:
        found = re.findall(r"\d+", browser.value(script))[:3]
        return "#" + "".join(f"{int(each):02x}" for each in found)

    back = _luminance(hexadecimal("getComputedStyle(document.body).backgroundColor"))
    assert (back > 0.5) == (scheme == "light")

    def contrast(colour: str) -> float:
        low, high = sorted((back, _luminance(colour)))
        return (high + 0.05) / (low + 0.05)

    for colour in (*COLOURS, REST_COLOUR):
        assert contrast(colour) >= 3, colour
    for element in ("h1", "dt", "caption", "td", "a", ".role-axis-label text"):
        kind = "fill" if "text" in element else "color"
        script = (
            f"(e => e ? getComputedStyle(e).{kind} : 'rgb(127,127,127)')"
            f"(document.querySelector({element!r}))"
        )
        if browser.value(f"document.querySelector({element!r}) !== null"):
            assert contrast(hexadecimal(script)) >= 4.5, element


def test_rows_beyond_the_bound_are_counted(browser: Chromium, tmp_path: Path) -> None:
    number = MOST_SHOWN * 10
    columns: dict[str, Any] = {
        "srcIP": [f"10.0.{n // 256}.{n % 256}" for n in range(number)],
        "packets": [(n * 7919) % number for n in range(number)],
        "mean": [1.0] * number,
    }
    browser.open(written(report_of(rows_of(TOTALS, columns)), tmp_path / "r.html"))
    cells = browser.value(CELLS)
    assert [int(row[1]) for row in cells] == list(range(number - 1, number - 1 - MOST_SHOWN, -1))
    assert browser.value("document.querySelector('table.rows caption').textContent") == (
        "The first 1,000 of 10,000 rows, in descending order of packets;"
        " 9,000 are not in this file."
    )
    assert browser.complaints == []


def test_an_empty_answer_and_one_packet(browser: Chromium, tmp_path: Path) -> None:
    empty = rows_of(RATES, {"second": [], "srcIP": [], "packets": [], "bits": [], "mean": []})
    one = rows_of(
        PACKETS, {"timestamp": [0.5], "srcIP": ["10.0.0.1"], "srcPort": [80], "len": [60]}
    )
    browser.open(written(report_of(empty, one), tmp_path / "r.html"))
    assert browser.complaints == []
    assert browser.value("document.querySelector('#a1 p').textContent") == "No rows."
    assert browser.value("document.querySelectorAll('#a2 .wide .mark-symbol path').length") == 1
    assert data(browser)[0]["times"] == ["2023-11-14 22:14:00.500000Z"]
    assert data(browser)[0]["at"] == [0.5]
    assert BEGAN % 60 == 0
    assert pa.types.is_string(one.column("srcIP").type)
