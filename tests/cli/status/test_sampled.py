"""The rate of a sample and what it sheds, in the status, its schema, the tables and the metrics."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from rich.console import Console
from tests.cli.status.test_prometheus import document, samples

from gscope.cli.status.prometheus import exposition
from gscope.cli.status.run_list import problems
from gscope.cli.status.view import status_view

if TYPE_CHECKING:
    from gscope.cli.status.document import Document

SCHEMA = Path(__file__).parents[3] / "docs" / "status.schema.json"


@pytest.fixture
def sampled(tmp_path: Path) -> Document:
    """The status of a run that keeps a quarter of the packets of eth0."""
    found = document(tmp_path)
    found["capture"]["sample_rate"] = 0.25
    (eth0, _) = found["capture"]["interfaces"]
    eth0["shed_packets"], eth0["accepted_packets"] = 3, 1
    for each in found["loss"]["interfaces"][:1]:
        each["shed_packets"], each["accepted_packets"] = 3, 1
    return found


def shown(status: Document) -> str:
    text = io.StringIO()
    console = Console(file=text, width=140)
    for part in status_view(status):
        console.print(part)
    return text.getvalue()


def test_the_schema_describes_the_rate(sampled: Document) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    validator.validate(json.loads(json.dumps(sampled)))
    sampled["capture"]["sample_rate"] = 0
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(sampled)


def test_the_view_shows_rate_and_shed_packets(sampled: Document) -> None:
    text = shown(sampled)
    assert "sampling: fixed rate 0.25, 3 packets shed" in text
    assert "eth0: 4 received = 1 accepted + 3 shed" in text


def test_what_a_fixed_rate_sheds_is_no_problem(sampled: Document) -> None:
    assert not [each for each in problems(sampled) if "shed" in each]


def test_a_run_that_keeps_all_packets_shows_no_rate(tmp_path: Path) -> None:
    assert "sampling" not in shown(document(tmp_path))


def test_metrics_have_the_rate(sampled: Document, tmp_path: Path) -> None:
    reported = samples(exposition(sampled))
    assert reported["gscope_sample_rate",] == 0.25
    assert reported["gscope_shed_packets_total", "eth0"] == 3
    whole = samples(exposition(document(tmp_path / "other")))
    assert whole["gscope_sample_rate",] == 1


def test_the_view_shows_that_the_rate_may_fall_before_it_has_fallen(tmp_path: Path) -> None:
    status = document(tmp_path)
    status["capture"]["shedding_mode"] = "auto"
    assert "sampling: auto, rate 1; no overload so far" in shown(status)
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    validator.validate(json.loads(json.dumps(status)))
    status["capture"] |= {"load_rate": 0.5, "least_load_rate": 0.5, "load_reason": "log"}
    assert "no overload so far" not in shown(status)
    status["capture"]["shedding_mode"] = "sometimes"
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(status)
