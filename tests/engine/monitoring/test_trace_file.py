"""Traces on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.monitoring.trace_file import TraceBook, read_traces

if TYPE_CHECKING:
    from pathlib import Path


def test_traces_are_read_while_they_are_written(tmp_path: Path) -> None:
    book = TraceBook(tmp_path / "traces")
    book.add({"id": 1})
    book.add({"id": 2})
    assert list(read_traces(tmp_path / "traces")) == [{"id": 1}, {"id": 2}]
    book.close()


def test_the_budget_holds_and_the_latest_stay(tmp_path: Path) -> None:
    book = TraceBook(tmp_path, budget_bytes=1000)
    for number in range(500):
        book.add({"id": number})
    book.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1000
    kept = [trace["id"] for trace in read_traces(tmp_path)]
    assert kept == list(range(kept[0], 500))
    assert len(kept) > 30


def test_a_line_that_a_crash_cut_off_is_skipped(tmp_path: Path) -> None:
    book = TraceBook(tmp_path)
    book.add({"id": 1})
    book.close()
    file = tmp_path / "traces.ndjson"
    file.write_bytes(file.read_bytes() + b'{"id": 2, "hops": [')
    assert list(read_traces(tmp_path)) == [{"id": 1}]
    again = TraceBook(tmp_path)
    again.add({"id": 3})
    again.close()
    assert list(read_traces(tmp_path)) == [{"id": 1}, {"id": 3}]


def test_no_traces_are_no_error(tmp_path: Path) -> None:
    assert list(read_traces(tmp_path / "none")) == []


def test_a_folder_that_cannot_be_written_costs_traces_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    TraceBook(tmp_path / "file").add({"id": 1})
