"""Metrics: names, values, and the endpoint that serves them."""

from __future__ import annotations

import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.cli.status.run_folder import run_folder

from gscope.cli.status.document import status_document
from gscope.cli.status.endpoint import Address, parse_address, served
from gscope.cli.status.prometheus import exposition
from gscope.errors import UsageError

if TYPE_CHECKING:
    from gscope.cli.status.document import Document

OPERATIONS = Path(__file__).parents[3] / "docs" / "operations.md"
_NO_COUNTERS = {
    *("schema", "now_ns", "run", "traces", "pid", "java_pid", "name", "lfta", "interface"),
    *("device", "state", "kind", "sides", "damage", "is_live", "newest", "waits_for"),
    *(
        "incomplete_epochs",
        "has_ended",
        "loss",
        "state_since_ns",
        "java_pid",
        "began_ns",
        "heartbeat_interval_ns",
    ),
}
"""What identifies or describes; everything else is a counter or gauge that is to be explained."""

_BY_LABEL = {
    *("malformed_packets", "unsupported_packets", "undecodable", "foreign", "wrapped_sums"),
    *("crowded_out", "incomplete_epochs_total", "transferred_bytes"),
}
"""Counters that are objects: one number for each reason, function or query."""


def document(work: Path) -> Document:
    with run_folder(work) as run_dir:
        return status_document(run_dir.file.record, time.time_ns())


def samples(text: str) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_was_counted_is_reported(tmp_path: Path) -> None:
    reported = samples(exposition(document(tmp_path)))
    assert reported["gscope_up", "talkers"] == 1
    assert reported["gscope_received_packets_total", "eth0"] == 4
    assert reported["gscope_received_packets_total", "eth1"] == 0
    assert reported["gscope_query_rows_total", "tens"] == 3
    assert reported["gscope_operator_waiting_tuples", "tens"] == 5
    assert reported["gscope_undecodable_payloads_total", "dns_name"] == 1
    assert reported["gscope_wrapped_sums_total", "flows"] == 2
    assert reported["gscope_query_watermark_timestamp_seconds", "tens"] == 410
    assert reported["gscope_restarts_total", "job"] == 0


def test_every_metric_has_a_meaning_and_a_name_of_its_own(tmp_path: Path) -> None:
    families = list(text_string_to_metric_families(exposition(document(tmp_path))))
    assert all(family.documentation.endswith(".") for family in families)
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    assert all(name.startswith("gscope_") for name in names)


def test_every_metric_and_counter_is_explained(tmp_path: Path) -> None:
    found = document(tmp_path)
    reported = {family.name for family in text_string_to_metric_families(exposition(found))}
    text = OPERATIONS.read_text()
    missing = sorted(name for name in reported if f"`{name}" not in text)
    missing += sorted(name for name in counters(found) if f"`{name}`" not in text)
    assert not missing


def counters(value: object) -> set[str]:
    """The names of everything that is counted in a document."""
    names: set[str] = set()
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in _NO_COUNTERS:
                continue
            if isinstance(inner, dict | list):
                names |= counters(inner)
                if name in _BY_LABEL:
                    names.add(name)
            else:
                names.add(name)
    elif isinstance(value, list):
        for inner in value:
            names |= counters(inner)
    return names - {"dns_name"}


def test_metrics_are_served(tmp_path: Path) -> None:
    with run_folder(tmp_path) as run_dir, served(Address("127.0.0.1", 0)) as metrics:
        record = run_dir.file.record
        metrics.on_change(record, record)
        with urllib.request.urlopen(metrics.url) as answer:
            reported = samples(answer.read().decode())
    assert reported["gscope_up", "talkers"] == 1


def test_before_there_is_a_run_nothing_is_reported() -> None:
    with (
        served(Address("127.0.0.1", 0)) as metrics,
        urllib.request.urlopen(metrics.url) as answer,
    ):
        assert answer.read() == b""


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with (
        served(Address("127.0.0.1", 0)) as metrics,
        pytest.raises(UsageError, match=r"cannot serve metrics on 127\.0\.0\.1:\d+: address"),
        served(Address("127.0.0.1", urlsplit(metrics.url).port or 0)),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9095", Address("127.0.0.1", 9095)),
        ("0.0.0.0:9095", Address("0.0.0.0", 9095)),
        ("[::1]:80", Address("::1", 80)),
        (":80", Address("127.0.0.1", 80)),
    ],
)
def test_addresses_are_read(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "x", "1.2.3.4", "host:", "70000", "-1", "1:2:x"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid address"):
        parse_address(text)
