"""Alerts on real captures, compared with a plain loop over the files of the same answers."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dpkt
import pytest
from tests.capture.replay.test_replay_capture import write_pcap
from tests.cli.outlets.alert_oracle import Expected, ordered
from tests.cli.outlets.servers import HookServer
from tests.live.test_run import udp
from tests.support.gscope_command import run
from tests.support.requirements import CAPTURES, needs_captures

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

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


def last_epoch(capture: Path, step: int) -> int:
    """Return the epoch of the last packet: the first one that the input has not passed."""
    unit = 1 if step == 1 else 1_000_000_000
    with capture.open("rb") as file:
        return max(int(time * unit) // step * step for time, _ in dpkt.pcap.UniversalReader(file))


@needs_captures
@pytest.mark.spark
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
    expected = alert.events(rows, last_epoch(CAPTURES / capture, alert.step))
    assert {event["event"] for event in expected} >= {"raised"}
    found = [
        {name: value_of(name, value) for name, value in event.items()}
        for _, _, event in server.rows
    ]
    assert ordered(found) == expected


SECOND = 1_000_000_000
LAST_ROW, LAST_PACKET = 12, 20
BOTH = """DEFINE { query_name 'rows'; } SELECT time AS t, srcPort FROM UDP WHERE id < 100;
DEFINE { query_name 'counts'; }
SELECT tb, srcPort, count(*) AS n FROM UDP WHERE id < 100 GROUP BY time AS tb, srcPort"""


def silent(query: str, epoch: str, epochs: int) -> Expected:
    """An alert that is raised by each row and cleared after seconds without any."""
    name = f"{query}_{epochs}"
    return Expected(name, query, epoch, ("srcPort",), "", None, 1, None, epochs, True, 1)


@pytest.mark.spark
@pytest.mark.parametrize("order", ["apart", pytest.param("together", marks=pytest.mark.long)])
def test_a_capture_that_goes_on_without_rows_clears_alerts_as_far_as_it_goes(
    tmp_path: Path, server: HookServer, order: str
) -> None:
    capture, out = tmp_path / "up.pcap", tmp_path / "out"
    times = [*range(LAST_ROW - 4, LAST_ROW + 1), *range(LAST_ROW + 1, LAST_PACKET + 1)]
    ids = [n if n <= LAST_ROW else 100 + n for n in times]
    write_pcap(capture, [(n * SECOND + n, udp(i)) for n, i in zip(times, ids, strict=True)])
    # The second of the last packet is open at the end, so that the second of each pair stays
    # raised.
    most = LAST_PACKET - 1 - LAST_ROW
    alerts = [
        silent(query, epoch, epochs)
        for query, epoch in (("rows", "t"), ("counts", "tb"))
        for epochs in (most, most + 1)
    ]
    texts = [f"{each.text} by srcPort" for each in alerts]
    options = [option for text in texts for option in ("--alert", text)]
    to = ("--to", f"http://127.0.0.1:{server.port}/", "--work-dir", tmp_path / "work")
    target = ("-w", out) if order == "apart" else ("-o", "ndjson")
    done = run("replay", capture, "-e", BOTH, *target, *to, *options)
    assert done.returncode == 0, done.stderr
    rows = [{"t": n, "tb": n, "srcPort": 1000 + i % 7} for n, i in zip(times, ids, strict=True)]
    expected = [event for each in alerts for event in each.events(rows[:5], until=LAST_PACKET)]
    of_last = [event for event in expected if event["srcPort"] == rows[4]["srcPort"]]
    assert [event["event"] for event in of_last] == ["raised", "cleared", "raised"] * 2
    assert ordered(event for _, _, event in server.rows) == ordered(expected)
