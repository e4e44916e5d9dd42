"""Destinations of rows in the status, in its schema, in the tables and in the metrics."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from rich.console import Console
from tests.cli.outlets.servers import HookServer
from tests.cli.outlets.test_outlets import Run
from tests.cli.status.test_prometheus import document, samples
from tests.cli.status.test_readers import SCHEMA
from tests.support.gscope_command import wait_for

from gscope.cli.status.prometheus import exposition
from gscope.cli.status.view import status_view
from gscope.queries.run_folder.layout import OUTLETS_STATISTICS_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.status.document import Document


@pytest.fixture
def sending(tmp_path: Path) -> Document:
    """The status of a run with two destinations, one of which is away."""
    server, away = HookServer(), HookServer()
    away.kill()
    urls = [f"http://127.0.0.1:{each.port}/" for each in (server, away)]
    run = Run(tmp_path / "run", *urls, patience_s=0.0)
    run.write(7)
    wait_for(lambda: len(server.rows) == 7, "the rows at the server that is up")
    wait_for(lambda: run.sink.accounts()[1]["failure"], "the failure")
    run.close()
    server.kill()
    snapshot: dict[str, Any] = json.loads((run.folder / OUTLETS_STATISTICS_FILE).read_bytes())
    (tmp_path / "work").mkdir(mode=0o700)
    return document(tmp_path / "work") | {"outlets": snapshot["outlets"]}


def test_schema_tables_and_metrics_have_them(sending: Document) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    validator.validate(json.loads(json.dumps(sending)))
    up, away = (each["name"] for each in sending["outlets"])
    console = Console(width=160, record=True, file=io.StringIO())
    for part in status_view(sending):
        console.print(part)
    lines = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert f"{up} up 7 0 0 0 0" in lines
    assert f"{away} connection refused 0 7 0 0 1" in lines
    found = samples(exposition(sending))
    assert found["gscope_outlet_sent_rows_total", up] == 7
    assert found["gscope_outlet_waiting_rows", away] == 7
    assert found["gscope_outlet_outages_total", away] == 1
