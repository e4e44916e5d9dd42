"""``gscope report``, ``-o html``, ``-o svg`` and ``-o png``: what is refused, and whole runs."""

from __future__ import annotations

import csv
import io
import os
import re
import struct
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.cli.report.things import RATES, TOTALS, answer, report_of, rows_of
from tests.support.gscope_command import run
from tests.support.requirements import CAPTURES, needs, needs_captures

from gscope.cli.config.time_style import TimeStyle
from gscope.cli.main import run as gscope
from gscope.cli.report.sink import ReportSink
from gscope.errors import GscopeError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.report.chromium import Chromium

    from gscope.cli.report.contents import ReportAnswer

RATE = (
    "DEFINE { query_name rate; } SELECT second, protocol, count(*) AS packets, sum(len) AS bytes,"
    " avg(len) AS mean FROM IP GROUP BY second(time), protocol"
)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "t.pcap").write_bytes(b"")
    return tmp_path


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert gscope(arguments) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [("report", "t.pcap", "-w", "r.html"), ("replay", "t.pcap", "-q", "link_load", "-o", "svg")],
)
def test_a_missing_library_is_named_with_its_remedy(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    said = refusal(capsys, *arguments)
    assert "needs vl-convert-python; install it with: pip install 'gscope[report]'" in said
    assert not (here / "r.html").exists()


def test_the_library_is_imported_for_reports_only() -> None:
    done = run("help", "report", env=os.environ | {"PYTHONPROFILEIMPORTTIME": "1"})
    assert "gscope.cli.commands.replay" in done.stderr
    assert "vl_convert" not in done.stderr
    assert "gscope.cli.report" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("report", "t.pcap", "-o", "csv"),
            "a report is html, svg or png; for csv use gscope replay",
        ),
        (("report",), "nothing to read: name a capture"),
        (("report", "t.pcap", "-w", "none/r.html"), "none is not a folder"),
        (("report", "empty"), "empty has no answers"),
        (("report", "empty", "t.pcap"), "leave out captures, queries and further folders"),
        (("report", "empty", "-w", "x.svg"), "svg is drawn of captures"),
        (("report", "SELECT time FROM IP"), "is a query, not a capture; use -e"),
        (
            ("run", "-i", "lo", "-q", "link_load", "-o", "html"),
            "html is written at the end of a replay",
        ),
    ],
)
def test_what_cannot_be_reported_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    (here / "empty").mkdir()
    assert re.search(sentence, refusal(capsys, *arguments))


def test_a_terminal_gets_no_page(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "html is not for a terminal: name a file" in refusal(capsys, "report", "t.pcap")


def sink(*answers: ReportAnswer, kind: str, path: Path | None) -> ReportSink:
    return ReportSink(answers, kind, path, TimeStyle.UTC, lambda _: pytest.fail("no page"))


COLUMNS: dict[str, Any] = {
    "second": [0, 1],
    "srcIP": ["10.0.0.1", "<b>&amp;"],
    "packets": [3, 4],
    "bits": [1, 2],
    "mean": [1.5, 2.5],
}


@needs("chromium")
def test_a_picture_has_all_plots_of_an_answer(tmp_path: Path, browser: Chromium) -> None:
    path = tmp_path / "rates.svg"
    made = sink(answer(RATES), kind="svg", path=path)
    rows = rows_of(RATES, COLUMNS)
    made.write("rates", pa.table({name: rows.column(name) for name in COLUMNS}))
    made.close(is_complete=True)
    browser.open(path)
    assert browser.complaints == []
    texts = browser.value("[...document.querySelectorAll('text')].map((each) => each.textContent)")
    assert {"rates: packets", "rates: bits", "rates: mean", "<b>&amp;", "2023-11-14, UTC"} <= set(
        texts
    )
    assert browser.value("document.querySelectorAll('.mark-line path').length") == 6
    label = browser.value("document.documentElement.getAttribute('aria-label')")
    assert label.count("the greatest value is") == 3


def test_a_png_is_a_picture_of_two_pixels_for_one(tmp_path: Path) -> None:
    path = tmp_path / "rates.png"
    made = sink(answer(RATES), kind="png", path=path)
    rows = rows_of(RATES, COLUMNS)
    made.write("rates", pa.table({name: rows.column(name) for name in COLUMNS}))
    made.close(is_complete=True)
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack("!II", data[16:24])
    assert 1800 < width < 2200
    assert 1500 < height < 3000


def test_a_list_and_several_answers_have_no_picture(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="totals has no time, so there is no svg of it"):
        sink(answer(TOTALS), kind="svg", path=None)
    with pytest.raises(UsageError, match="png shows one result, but there are 2"):
        sink(answer(RATES), answer(RATES), kind="png", path=tmp_path / "x.png")
    empty = sink(answer(RATES), kind="svg", path=tmp_path / "x.svg")
    with pytest.raises(GscopeError, match="rates has no rows to plot"):
        empty.close(is_complete=True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_takes_a_page_or_a_picture_of_each_answer(tmp_path: Path) -> None:
    facts = report_of().facts
    page = ReportSink([answer(TOTALS)], "html", tmp_path, TimeStyle.UTC, lambda _: facts)
    page.close(is_complete=True)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert text.endswith("</html>\n")
    others = answer(RATES.replace("rates", "others"))
    pictures = sink(answer(RATES), others, kind="svg", path=tmp_path)
    rows = rows_of(RATES, COLUMNS)
    for query in ("rates", "others"):
        pictures.write(query, pa.table({name: rows.column(name) for name in COLUMNS}))
    pictures.close(is_complete=True)
    names = ["others.svg", "rates.svg", "report.html"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_a_run_that_failed_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "r.svg"
    path.write_text("before", encoding="utf-8")
    sink(answer(RATES), kind="svg", path=path).close(is_complete=False)
    assert path.read_text(encoding="utf-8") == "before"


@pytest.mark.long
@pytest.mark.spark
@needs_captures
@needs("chromium")
@pytest.mark.parametrize(
    "name",
    ["ndpi-fuzz-2006-06-26-2594.pcap", "ndpi-ookla.pcap", "ndpi-mumble.pcapng", "zeek-vntag.pcap"],
)
def test_numbers_of_a_report_are_those_of_csv(name: str, tmp_path: Path, browser: Chromium) -> None:
    work = ("--work-dir", tmp_path / "work", "--quiet")
    page, capture = tmp_path / "r.html", CAPTURES / name
    done = run("report", capture, "-e", RATE, "-w", page, *work)
    assert (done.returncode, done.stderr) == (0, "")
    done = run("replay", capture, "-e", RATE, "-o", "csv", *work)
    expected = list(csv.reader(io.StringIO(done.stdout)))[1:]
    browser.open(page)
    assert browser.complaints == []
    assert browser.requests == [page.as_uri()]
    section = "document.querySelector('#a1')"
    assert browser.value(f"{section}.querySelector('h2').textContent") == "rate"
    shown = browser.value(
        f"[...{section}.querySelectorAll('tbody tr')].map((row) =>"
        " [...row.cells].map((cell) => cell.dataset.v ?? cell.textContent))"
    )
    assert [[f"{row[0][:-1]}.000000000Z", *row[1:]] for row in shown] == expected[:1000]
    plots = browser.value(
        f"[...{section}.querySelectorAll('figure script')].map((s) => JSON.parse(s.textContent))"
    )
    for place, plot in enumerate(plots, 2):
        whole = {(row[0][:19], row[1]): float(row[place]) for row in expected}
        for line in plot["lines"]:
            for time, value in zip(line["i"], line["v"], strict=True):
                key = plot["times"][time][:19], line["label"]
                if not line["label"].endswith(" others"):
                    assert value == pytest.approx(whole.get(key, 0.0), rel=1e-12)
