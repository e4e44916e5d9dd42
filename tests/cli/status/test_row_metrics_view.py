"""Rows as metrics in the status, in its schema, in the tables and in the metrics."""

from __future__ import annotations

import io
import json
import time
from typing import TYPE_CHECKING

import jsonschema
from rich.console import Console
from tests.cli.outlets.test_row_gauges import FLOWS, Shown, flow
from tests.cli.status.run_folder import run_folder
from tests.cli.status.test_prometheus import samples
from tests.cli.status.test_readers import SCHEMA

from gscope.cli.status.document import status_document
from gscope.cli.status.prometheus import exposition
from gscope.cli.status.view import status_view

if TYPE_CHECKING:
    from pathlib import Path


def test_schema_tables_and_metrics_have_them(tmp_path: Path) -> None:
    with run_folder(tmp_path) as run_dir:
        shown = Shown(run_dir.path, FLOWS.format(name="flows"), "flows", most=6)
        empty = status_document(run_dir.file.record, time.time_ns())["row_metrics"]
        assert [(each["name"], each["epoch"]) for each in empty] == [("flows", None)]
        shown.write("flows", *(flow(28333320, f"10.0.0.{n}") for n in range(5)))
        shown.close(flows=28333321)
        document = status_document(run_dir.file.record, time.time_ns())
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    validator.validate(json.loads(json.dumps(document)))
    console = Console(width=160, record=True, file=io.StringIO())
    for part in status_view(document):
        console.print(part)
    lines = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert "flows 2023-11-14 22:00:00 4 3" in lines
    found = samples(exposition(document))
    assert found["gscope_rows_series", "flows"] == 4
    assert found["gscope_rows_left_out_total", "flows", "limit"] == 3
