"""Marks of results that other hosts have answered: in the folder of the run, and in its status."""

from __future__ import annotations

import json
import time
from pathlib import Path

import jsonschema
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from tests.cli.status.run_folder import run_folder

from gscope.cli.status.document import status_document
from gscope.cli.status.prometheus import exposition
from gscope.cli.status.view import status_view
from gscope.cli.supervision.answered_marks import MOST_RANGES, AnsweredMarks
from gscope.queries.run_folder.layout import ANSWERED_FILE
from gscope.queries.streams.loss_reasons import KERNEL, RESTART, IncompleteEpochs

SCHEMA = Path(__file__).parents[3] / "docs" / "status.schema.json"


def test_a_run_without_marks_writes_no_file(tmp_path: Path) -> None:
    AnsweredMarks(tmp_path).note([])
    assert not (tmp_path / ANSWERED_FILE).exists()


def test_marks_are_in_the_status_and_a_resumed_run_continues_them(tmp_path: Path) -> None:
    with run_folder(tmp_path, has_reported=False) as run_dir:
        folder = run_dir.path
        first = IncompleteEpochs("flows", RESTART, 10, 12)
        AnsweredMarks(folder).note([first, IncompleteEpochs("flows", KERNEL, None, None, 7)])
        resumed = AnsweredMarks(folder)
        resumed.note([first, IncompleteEpochs("pairs", RESTART, 3, 3)])
        resumed.note([IncompleteEpochs("flows", RESTART, 20, 20)])
        document = json.loads(json.dumps(status_document(run_dir.file.record, time.time_ns())))
        jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)
        assert [
            (each["name"], each["incomplete_epochs_total"]) for each in document["answered"]
        ] == [
            ("flows", {RESTART: 4, KERNEL: 1}),
            ("pairs", {RESTART: 1}),
        ]
        console = Console(width=200)
        with console.capture() as shown:
            console.print(*status_view(document))
        assert "flows, answered by other hosts: 5 incomplete epochs" in shown.get()
        families = {
            each.name: each for each in text_string_to_metric_families(exposition(document))
        }
        found = {
            (each.labels["query"], each.labels["reason"]): each.value
            for each in families["gscope_incomplete_epochs"].samples
        }
        assert found == {("flows", RESTART): 4, ("flows", KERNEL): 1, ("pairs", RESTART): 1}


def test_the_file_lists_the_latest_ranges_and_counts_all(tmp_path: Path) -> None:
    marks = AnsweredMarks(tmp_path)
    number = MOST_RANGES + 5
    for epoch in range(number):
        marks.note([IncompleteEpochs("flows", RESTART, 2 * epoch, 2 * epoch)])
    (found,) = json.loads((tmp_path / ANSWERED_FILE).read_text())["results"]
    assert found["incomplete_epochs_total"] == {RESTART: number}
    assert [each["first"] for each in found["incomplete_epochs"]] == [*range(10, 2 * number, 2)]


def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    for text in ("", "{", "[1]", '{"schema": 1}', '{"schema": 1, "results": [{"name": 3}]}'):
        (tmp_path / ANSWERED_FILE).write_text(text)
        AnsweredMarks(tmp_path).note([IncompleteEpochs("flows", RESTART, 1, 1)])
        (found,) = json.loads((tmp_path / ANSWERED_FILE).read_text())["results"]
        assert found["incomplete_epochs_total"] == {RESTART: 1}
