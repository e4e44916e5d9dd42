"""Destinations and alerts in the status, in its schema, in the tables and in the metrics."""

from __future__ import annotations

import io
import json
import shutil
import time
from typing import TYPE_CHECKING

import jsonschema
import pytest
from rich.console import Console
from tests.cli.outlets.servers import HookServer
from tests.cli.outlets.test_alerts import COLUMNS, row, table
from tests.cli.outlets.test_outlets import Run
from tests.cli.status.run_folder import run_folder
from tests.cli.status.test_prometheus import samples
from tests.cli.status.test_readers import SCHEMA
from tests.support.gscope_command import wait_for

from gscope.cli.outlets.alerts import Alerts
from gscope.cli.status.document import status_document
from gscope.cli.status.prometheus import exposition
from gscope.cli.status.view import status_view
from gscope.queries.gsql.alerts.parser import parse_alert
from gscope.queries.run_folder.layout import OUTLETS_FOLDER

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
    return shown(tmp_path, run)


def shown(folder: Path, run: Run) -> Document:
    """Return the status of a run that has written the counters of ``run``."""
    (folder / "work").mkdir(mode=0o700)
    with run_folder(folder / "work") as run_dir:
        shutil.copytree(run.folder / OUTLETS_FOLDER, run_dir.path / OUTLETS_FOLDER)
        return status_document(run_dir.file.record, time.time_ns())


def lines_of(status: Document) -> list[str]:
    """Return the tables of the status for people, with one space between columns."""
    console = Console(width=160, record=True, file=io.StringIO())
    for part in status_view(status):
        console.print(part)
    return [" ".join(line.split()) for line in console.export_text().splitlines()]


def validate(status: Document) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    validator.validate(json.loads(json.dumps(status)))


def test_schema_tables_and_metrics_have_them(sending: Document) -> None:
    validate(sending)
    up, away = (each["name"] for each in sending["outlets"])
    lines = lines_of(sending)
    assert f"{up} up 7 0 0 0 0" in lines
    assert f"{away} connection refused 0 7 0 0 1" in lines
    found = samples(exposition(sending))
    assert found["gscope_outlet_sent_rows_total", up] == 7
    assert found["gscope_outlet_waiting_rows", away] == 7
    assert found["gscope_outlet_outages_total", away] == 1


def test_rows_that_alerts_do_not_judge_are_counted_across_a_kill(tmp_path: Path) -> None:
    """Two groups fit: of five that exceed the threshold three are ignored; two rows are late."""
    server = HookServer()
    rule = parse_alert("up = q: raise n > 10, clear n < 8")
    alerts = Alerts([(rule, COLUMNS)], 2, lambda _: None)
    run = Run(tmp_path / "run", f"http://127.0.0.1:{server.port}/", alerts=alerts)
    run.sink.write("q", table([row(3, 12, port=port) for port in range(5)]))
    run.sink.write("q", table([row(2, 99), row(1, 99)]))
    run.record()
    run.kill()
    run.resume()
    run.sink.write("q", table([row(4, 12, port=0), row(4, 1, port=1)]))
    run.close()
    server.kill()
    status = shown(tmp_path, run)
    assert status["alerts"] == [
        {
            "name": "up",
            "query": "q",
            "keys": 1,
            "raised_keys": 1,
            "ignored_rows_total": 3,
            "late_rows_total": 2,
        }
    ]
    validate(status)
    lines = lines_of(status)
    assert "ALERT QUERY RAISED KEYS IGNORED LATE" in lines
    assert "up q 1 1 3 2" in lines
    found = samples(exposition(status))
    assert found["gscope_alert_keys", "up"] == 1
    assert found["gscope_alert_raised_keys", "up"] == 1
    assert found["gscope_alert_ignored_rows_total", "up"] == 3
    assert found["gscope_alert_late_rows_total", "up"] == 2
