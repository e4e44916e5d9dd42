"""Reports of files: each format gives the values that were written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from gscope.cli.config.time_style import TimeStyle
from gscope.cli.report.answer_folder import report_of_folder
from gscope.cli.report.series import plots_of
from gscope.cli.sinks.replay_files import FILE_KINDS, FolderSink
from gscope.engine.sinks.columns import as_text
from gscope.errors import GscopeError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.report.contents import AnsweredRows

_SECOND_NS = 1_000_000_000
BEGAN_NS = 1_700_000_040 * _SECOND_NS
TYPES = {"second": "TIMESTAMP", "srcIP": "IP", "port": "INT", "name": "STRING"}
TYPES |= {"packets": "INT", "mean": "FLOAT", "is_new": "BOOL"}


def table() -> pa.Table:
    seconds = [0, 0, 1, 1, 9, 10]
    return pa.table(
        {
            "second": pa.array([BEGAN_NS + s * _SECOND_NS for s in seconds], pa.timestamp("ns")),
            "srcIP": ["10.0.0.1", "2001:db8::1", "10.0.0.1", "10.0.0.1", None, "::ffff:10.0.0.1"],
            "port": [443, 443, 443, 80, 443, 443],
            "name": ["a", None, 'x,"y"', "a\n", "NULL", "12"],
            "packets": [5, 6, None, (1 << 62) + 1, -9, 10],
            "mean": [0.1, 2.5, None, 1e300, 4.0, 1 / 3],
            "is_new": [True, False, None, True, False, True],
        }
    )


def write(folder: Path, kind: str, tables: dict[str, pa.Table]) -> Path:
    sink = FolderSink(folder, kind, list(tables))
    for query, rows in tables.items():
        named = [field.with_metadata({"gscope.type": TYPES[field.name]}) for field in rows.schema]
        sink.begin(query, pa.schema(named))
        sink.write(query, rows.cast(pa.schema(named)))
    sink.close(is_complete=True)
    return folder


def values(rows: AnsweredRows) -> dict[str, list[str | None]]:
    return {c.name: as_text(rows.column(c.name)).to_pylist() for c in rows.answer.columns}


@pytest.mark.parametrize("kind", FILE_KINDS)
def test_each_format_gives_the_rows_and_their_types(tmp_path: Path, kind: str) -> None:
    expected = table()
    report = report_of_folder(write(tmp_path, kind, {"ports": expected}), TimeStyle.UTC)
    (rows,) = report.answers
    assert rows.total == rows.kept == 6
    texts = {name: as_text(expected[name].combine_chunks()).to_pylist() for name in TYPES}
    assert values(rows) == texts
    assert {c.name: c.type.value for c in rows.answer.columns} == TYPES
    assert ("first time in answers", "2023-11-14 22:14:00Z") in report.facts.entries
    assert ("last time in answers", "2023-11-14 22:14:10Z") in report.facts.entries


@pytest.mark.parametrize("kind", FILE_KINDS)
def test_keys_are_what_tells_rows_of_one_time_apart(tmp_path: Path, kind: str) -> None:
    wanted = table().select(["second", "srcIP", "port", "packets", "mean"])
    report = report_of_folder(write(tmp_path, kind, {"ports": wanted}), TimeStyle.UTC)
    (rows,) = report.answers
    assert rows.answer.keys == ("srcIP", "port")
    assert rows.answer.measures == ("packets", "mean")
    plots = {plot.measure: plot for plot in plots_of(rows)}
    labels = {line.label for line in plots["mean"].lines}
    expected = {"10.0.0.1, 443", "2001:db8::1, 443", "10.0.0.1, 80", "NULL, 443"}
    assert labels - {"::ffff:10.0.0.1, 443"} == expected
    # What a missing row means is not in a file: a gap, never 0, and nothing is summed.
    assert not any((line.values == 0).any() or line.is_rest for line in plots["packets"].lines)


def test_parts_of_a_run_are_one_answer(tmp_path: Path) -> None:
    rows = table()
    for number, part in enumerate((rows.slice(0, 2), rows.slice(2, 4))):
        write(tmp_path, "parquet", {f"ports-20261124T11520{number}Z-00000{number}": part})
    report = report_of_folder(tmp_path, TimeStyle.UTC)
    (answer,) = report.answers
    assert answer.answer.query == "ports"
    assert values(answer)["packets"] == as_text(rows["packets"].combine_chunks()).to_pylist()


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_a_line_that_is_being_written_is_left_out(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind, {"ports": table()}) / f"ports.{kind}"
    whole = path.read_bytes()
    for cut in range(2, len(whole.splitlines()[-1]), 7):
        path.write_bytes(whole[:-cut])
        (rows,) = report_of_folder(tmp_path, TimeStyle.UTC).answers
        assert rows.total == 5


def test_a_long_file_is_read_from_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "csv", {"ports": table()}) / "ports.csv"
    monkeypatch.setattr("gscope.cli.report.answer_folder._MOST_TEXT", path.stat().st_size - 3)
    (rows,) = report_of_folder(tmp_path, TimeStyle.UTC).answers
    assert rows.total == 5
    assert "the rest is not read" in rows.marks[0]


def test_rows_without_a_key_are_a_list(tmp_path: Path) -> None:
    twice = pa.concat_tables([table(), table()])
    report = report_of_folder(write(tmp_path, "csv", {"packets": twice}), TimeStyle.UTC)
    assert report.answers[0].answer.axis is None
    assert plots_of(report.answers[0]) == ()


@pytest.mark.parametrize("kind", FILE_KINDS)
def test_an_answer_without_rows(tmp_path: Path, kind: str) -> None:
    report = report_of_folder(write(tmp_path, kind, {"none": table().slice(0, 0)}), TimeStyle.UTC)
    (rows,) = report.answers
    assert rows.total == 0
    assert plots_of(rows) == ()


def test_a_folder_without_answers_and_a_damaged_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no answers: files that end in .csv"):
        report_of_folder(tmp_path, TimeStyle.UTC)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    with pytest.raises(GscopeError, match=r"cannot read .*broken.parquet: it holds something else"):
        report_of_folder(tmp_path, TimeStyle.UTC)


@pytest.mark.parametrize("is_inside", [False, True])
def test_folders_by_time_are_one_answer_in_the_order_of_time(
    tmp_path: Path, is_inside: bool
) -> None:
    rows = table()
    for place, hour in enumerate((9, 10, 23)):
        below = tmp_path / "ports" / "date=2023-11-14" / f"hour={hour}"
        write(below, "parquet", {f"part-{place}": rows.slice(place * 2, 2)})
    hidden = tmp_path / "ports" / ".staged" / "hour=9"
    write(hidden, "parquet", {"part-0": rows})
    write(tmp_path / "ports" / "date=2023-11-14" / ".x", "parquet", {"part-0": rows})
    folder = tmp_path / "ports" if is_inside else tmp_path
    (answer,) = report_of_folder(folder, TimeStyle.UTC).answers
    assert answer.answer.query == "ports"
    assert values(answer)["packets"] == as_text(rows["packets"].combine_chunks()).to_pylist()
