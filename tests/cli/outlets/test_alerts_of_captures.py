"""Alerts on real captures, compared with a plain loop over the files of the same answers."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.outlets.alert_oracle import Expected, ordered
from tests.cli.outlets.servers import HookServer
from tests.support.gscope_command import run
from tests.support.requirements import CAPTURES, needs_captures

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.spark, needs_captures]

SCANS = Expected(
    "scans", "port_scan", "minute", ("srcIP", "destIP"), "", None, 1, None, 1, True, 60_000_000_000
)
TALKERS = Expected("busy", "query", "t", ("srcIP",), "n", (">", 20), 2, ("<", 10), 2, True, 1)
TALKERS_TEXT = "SELECT time AS t, srcIP, count(*) AS n FROM IPV4 GROUP BY time AS t, srcIP"


@pytest.fixture
def server() -> Iterator[HookServer]:
    made = HookServer()
    yield made
    made.kill()


def nanoseconds(text: str) -> int:
    """Return a time of an answer since 1970."""
    seconds, _, fraction = text.removesuffix("Z").replace("T", " ").partition(".")
    whole = datetime.fromisoformat(seconds).replace(tzinfo=UTC)
    return int(whole.timestamp()) * 1_000_000_000 + int(f"{fraction:0<9}"[:9])


def value_of(name: str, text: Any) -> Any:
    """Return a value of a file or an event in the form that the loop reads."""
    if name in ("minute", "epoch") and isinstance(text, str) and not text.isdecimal():
        return nanoseconds(text)
    return int(text) if isinstance(text, str) and text.isdecimal() else text


@pytest.mark.parametrize(
    ("capture", "query", "alert"),
    [
        ("ndpi-synscan.pcap", ("-q", "port_scan"), SCANS),
        pytest.param(*("ndpi-netflix.pcap", ("-e", TALKERS_TEXT), TALKERS), marks=pytest.mark.long),
    ],
)
def test_events_are_those_of_a_plain_loop_over_the_file(
    tmp_path: Path, server: HookServer, capture: str, query: tuple[str, ...], alert: Expected
) -> None:
    out = tmp_path / "out"
    to = ("--to", f"http://127.0.0.1:{server.port}/", "--alert", alert.text)
    done = run(
        "replay", CAPTURES / capture, *query, "-w", out, *to, "--work-dir", tmp_path / "work"
    )
    assert done.returncode == 0, done.stderr
    with (out / f"{alert.query}.csv").open(encoding="utf-8", newline="") as lines:
        rows = [
            {name: value_of(name, value) for name, value in row.items()}
            for row in csv.DictReader(lines)
        ]
    expected = alert.events(rows)
    assert {event["event"] for event in expected} >= {"raised"}
    found = [
        {name: value_of(name, value) for name, value in event.items()}
        for _, _, event in server.rows
    ]
    assert ordered(found) == expected
