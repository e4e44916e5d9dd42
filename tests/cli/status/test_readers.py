"""Readers on other hosts in the status, in its schema, in the tables and in the metrics."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from rich.console import Console
from tests.cli.status.test_prometheus import document, samples

from gscope.capture.log.remote.readers import Readers
from gscope.cli.status.prometheus import exposition
from gscope.cli.status.view import status_view

if TYPE_CHECKING:
    from gscope.cli.status.document import Document

SCHEMA = Path(__file__).parents[3] / "docs" / "status.schema.json"
NOW_NS = 1_700_000_000_000_000_000


@pytest.fixture
def served(tmp_path: Path) -> Document:
    """The status of a run whose log has two readers, and strangers."""
    readers = Readers("192.0.2.1:9470", wall_ns=lambda: NOW_NS)
    readers.on_connected("00001", "198.51.100.7:40000")
    readers.on_request("00001")
    readers.on_described("00001", "relay1")
    readers.on_sent("relay1", 5000, 100)
    for _ in range(3):
        readers.on_refused("wrong_tokens")
    behind = {"waiting_messages": 9, "waiting_tuples": 700, "waiting_bytes": 28_000}
    found = document(tmp_path)
    status = readers.status({"relay1": dict.fromkeys(behind, 0), "relay2": behind})
    found["capture"]["remote"] = {**status, "is_encrypted": True}
    found["now_ns"] = NOW_NS + 2_000_000_000
    return found


def test_the_schema_describes_them(served: Document) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    validator.validate(json.loads(json.dumps(served)))
    del served["capture"]["remote"]["consumers"][0]["state"]
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(served)


def test_tables_show_them(served: Document) -> None:
    console = Console(width=140, record=True, file=io.StringIO())
    for part in status_view(served):
        console.print(part)
    lines = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert any(line.startswith("relay1 connected 198.51.100.7:40000 2") for line in lines)
    assert any(line.startswith("relay2 absent - - 700") for line in lines)
    assert "serving at 192.0.2.1:9470, TLS: 1 connection; refused 3 wrong tokens" in lines


def test_metrics_report_them(served: Document) -> None:
    reported = samples(exposition(served))
    assert reported["gscope_reader_bytes_out_total", "relay1"] == 5000
    assert reported["gscope_reader_waiting_tuples", "relay2"] == 700
    assert reported["gscope_remote_refused_total", "wrong_tokens"] == 3
    assert reported["gscope_remote_connections",] == 1
