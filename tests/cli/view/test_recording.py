"""Recordings hold what was seen: epochs, filter and order of the screen."""

from __future__ import annotations

import csv
import errno
import json
import os
from typing import TYPE_CHECKING

import pytest
from tests.cli.view.answers import PORTS, TALKERS, model_of, talkers

from gscope.cli.view import recording as module
from gscope.cli.view.choices import AnswerChoice
from gscope.cli.view.recording import Recorder
from gscope.cli.view.rows.filters import Filter, parse_filter
from gscope.cli.view.rows.history import MOST_EPOCHS
from gscope.cli.view.rows.ordering import Sorting

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.view.model import ViewModel


def add(model: ViewModel, minute: int) -> None:
    rows = [(f"10.0.0.{host}", host, 100 * host + minute) for host in (2, 1, 3)]
    model.add("talkers", talkers(minute, rows))


@pytest.fixture
def notices() -> list[str]:
    return []


def test_rows_of_complete_epochs_are_recorded_in_order(tmp_path: Path, notices: list[str]) -> None:
    model = model_of(TALKERS, PORTS)
    history = model.histories[0]
    for minute in range(3):
        add(model, minute)
    wanted = parse_filter("packets>1", history.answer)
    recorder = Recorder(model, notices.append)
    path = tmp_path / "seen.csv"
    choice = AnswerChoice(Sorting("bytes"), wanted)
    assert recorder.start(str(path), history, choice, history.epochs[1]) == ""
    recorder.advance()
    # Only the second epoch is known to be complete; the first was not on the screen.
    assert len(path.read_text().splitlines()) == 1 + 2
    choice.filter = Filter()
    add(model, 3)
    recorder.stop()
    rows = list(csv.reader(path.read_text().splitlines()))
    assert rows[0] == ["minute", "srcIP", "packets", "bytes"]
    assert rows[1:] == [
        [
            f"2023-11-14 22:{14 + minute}:00.000000000Z",
            f"10.0.0.{host}",
            str(host),
            str(100 * host + minute),
        ]
        for minute in (1, 2, 3)
        for host in (3, 2)
    ]
    assert notices == [f"recorded 6 rows of talkers in {path}"]
    assert recorder.current is None


def test_ndjson_and_the_end_of_a_run(tmp_path: Path, notices: list[str]) -> None:
    model = model_of(TALKERS)
    recorder = Recorder(model, notices.append)
    path = tmp_path / "seen.ndjson"
    assert recorder.start(str(path), model.histories[0], AnswerChoice(None), None) == ""
    add(model, 0)
    recorder.advance()
    assert path.read_text() == ""
    model.on_end()
    recorder.advance()
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["bytes"] for row in found] == [200, 100, 300]
    recorder.stop()
    assert notices == [f"recorded 3 rows of talkers in {path}"]


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path, notices: list[str]) -> None:
    path = tmp_path / "seen.csv"
    path.write_text("kept")
    model = model_of(TALKERS)
    recorder = Recorder(model, notices.append)
    error = recorder.start(str(path), model.histories[0], AnswerChoice(None), None)
    assert error == "cannot record there: file exists"
    assert recorder.current is None
    assert path.read_text() == "kept"


def test_epochs_that_came_too_fast_are_counted(tmp_path: Path, notices: list[str]) -> None:
    model = model_of(TALKERS)
    recorder = Recorder(model, notices.append)
    path = tmp_path / "seen.csv"
    recorder.start(str(path), model.histories[0], AnswerChoice(None), None)
    for minute in range(MOST_EPOCHS + 5):
        add(model, minute)
    recorder.stop()
    assert notices == [
        f"recorded {3 * MOST_EPOCHS} rows of talkers in {path}; 5 epochs came too fast"
    ]


def test_a_full_disk_ends_the_recording_and_not_the_view(
    notices: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "write_csv", full)
    model = model_of(TALKERS)
    recorder = Recorder(model, notices.append)
    path = tmp_path / "seen.csv"
    recorder.start(str(path), model.histories[0], AnswerChoice(None), None)
    add(model, 0)
    add(model, 1)
    recorder.advance()
    assert notices == [
        f"recording has ended: {path}: no space left on device;"
        f" recorded 0 rows of talkers in {path}"
    ]
    recorder.stop()
    assert len(notices) == 1
