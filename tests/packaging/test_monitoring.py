"""The dashboard and the alerts: each metric and label in them is one that gscope exports."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
import time
import urllib.request
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.capture.sources.af_packet.network import DEVICE, own_network
from tests.cli.status.run_folder import run_folder
from tests.live.test_run import live, send_for  # noqa: F401  # a fixture
from tests.support.gscope_command import status, wait_for
from tests.support.requirements import ROOT, needs

from gscope.cli.status.document import status_document
from gscope.cli.status.prometheus import exposition

if TYPE_CHECKING:
    from pathlib import Path

MONITORING = ROOT / "packaging" / "monitoring"
DASHBOARD = MONITORING / "gscope_dashboard.json"
RULES = MONITORING / "gscope.rules.yml"
_NAME = re.compile(r"\bgscope_\w+")
_LABELS = re.compile(r"\bby \(([^)]*)\)")
_LEGEND = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")
_OF_PROMETHEUS = {"instance", "job"}


@cache
def panels() -> list[dict[str, Any]]:
    document = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return [panel for panel in document["panels"] if panel["type"] != "row"]


def expressions() -> list[tuple[str, str]]:
    """Return each expression with the text that shows labels of its series."""
    found = [
        (target["expr"], target["legendFormat"]) for each in panels() for target in each["targets"]
    ]
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]:
        found += [(rule["expr"], str(rule["annotations"])) for rule in group["rules"]]
    return found


def exported(text: str) -> set[str]:
    """Return the names of all samples that metrics in ``text`` can have."""
    return {
        family.name + ("_total" if family.type == "counter" else "")
        for family in text_string_to_metric_families(text)
    }


def unknown(names: set[str]) -> list[str]:
    used = {name for expression, _ in expressions() for name in _NAME.findall(expression)}
    assert len(used) > 30
    return sorted(used - names)


def test_every_metric_of_a_panel_or_an_alert_is_exported(tmp_path: Path) -> None:
    with run_folder(tmp_path) as run_dir:
        text = exposition(status_document(run_dir.file.record, time.time_ns()))
    assert unknown(exported(text)) == []
    labels: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    for expression, legend in expressions():
        shown = {*_LEGEND.findall(legend), *", ".join(_LABELS.findall(expression)).split(", ")}
        for name in _NAME.findall(expression):
            if name in labels:
                assert shown - {""} - _OF_PROMETHEUS <= labels[name], (expression, legend)


def test_a_panel_says_what_it_shows_and_lies_on_no_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        assert panel["description"].endswith("."), panel["title"]
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    numbers = [each["id"] for each in json.loads(DASHBOARD.read_text("utf-8"))["panels"]]
    assert len(numbers) == len(set(numbers))


def test_counters_are_read_as_rates_and_gauges_are_not() -> None:
    for expression, _ in expressions():
        for function, name in re.findall(r"(\w+)?\(?(gscope_\w+)", expression):
            is_rate = function in ("rate", "increase")
            assert is_rate == name.endswith("_total"), expression


@pytest.mark.long
@needs("promtool")
def test_promtool_accepts_the_expressions_and_the_alerts(tmp_path: Path) -> None:
    (tmp_path / "queries.yml").write_text(
        yaml.safe_dump(
            {
                "groups": [
                    {
                        "name": "panels",
                        "rules": [
                            {
                                "record": f"panel_{number}",
                                "expr": re.sub(r"\$__\w+", "5m", text).replace("$instance", ".*"),
                            }
                            for number, (text, _) in enumerate(expressions())
                        ],
                    }
                ]
            }
        )
    )
    for words in (
        ("check", "rules", tmp_path / "queries.yml"),
        ("check", "rules", RULES),
        ("test", "rules", MONITORING / "gscope.rules.test.yml"),
    ):
        done = subprocess.run(["promtool", *map(str, words)], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()


@pytest.mark.long
@pytest.mark.live
@pytest.mark.slow
def test_a_live_run_exports_every_metric(live: Any, tmp_path: Path) -> None:  # noqa: F811
    with own_network():
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        query = "SELECT tb, count(*) AS packets FROM IP GROUP BY time/1 AS tb"
        places = ("--work-dir", tmp_path, "--metrics", str(port))
        running = live("-e", query, "-i", f"main={DEVICE}", *places)
        sending = threading.Thread(target=send_for, args=(3,))
        sending.start()
        wait_for(lambda: status(tmp_path).get("job"), "the status of all processes")
        sending.join()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            names = exported(answer.read().decode())
        running.end()
    assert unknown(names) == []
