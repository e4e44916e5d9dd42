"""A live run whose webhook goes away, and which is killed and resumed meanwhile."""

from __future__ import annotations

import csv
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.af_packet.network import DEVICE, own_network, run_ip, send
from tests.cli.outlets.alert_oracle import Expected, ordered
from tests.cli.outlets.servers import HookServer
from tests.live.test_lives import detached, kill, numbers
from tests.live.test_run import udp
from tests.support.gscope_command import run, status, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "s3cret"
"""The password in a URL, and its path."""

IN_SILENCE = 1 << 32
"""A second far behind all packets; what is silent until then has had its last event long before."""

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.fixture(autouse=True)
def network() -> Iterator[None]:
    """Devices of our own; without the right to make them the test is skipped."""
    with own_network():
        run_ip("link", "set", "lo", "up")
        yield


@pytest.fixture
def server(network: None) -> Iterator[HookServer]:  # it listens there
    made = HookServer()
    yield made
    made.kill()


def rows_of(file: Path) -> list[dict[str, int]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return [{name: int(value) for name, value in row.items()} for row in csv.DictReader(lines)]


def holds_secret(file: Path) -> bool:
    return SECRET.encode() in file.read_bytes()


def outlet(work: Path, field: str) -> int:
    """Return a counter of the only destination; 0 before there is one."""
    outlets = status(work).get("outlets", ())
    return int(outlets[0][field]) if outlets else 0


def test_a_killed_run_sends_each_row_of_its_file_once(
    work: Path, tmp_path: Path, server: HookServer
) -> None:
    out = tmp_path / "out"
    url = f"http://me:{SECRET}@127.0.0.1:{server.port}/{SECRET}"
    begin = partial(detached, work, "-w", out, "--to", url)
    begun = begin()
    assert begun.returncode == 0, begun.stderr
    count = send(udp(n) for n in range(20))
    wait_for(lambda: outlet(work, "sent_rows_total") == count, "the first rows at the server")
    server.kill()
    count += send(udp(n) for n in range(count, count + 30))
    wait_for(lambda: outlet(work, "waiting_rows") == 30, "the rows in the spool")
    assert f"http://127.0.0.1:{server.port}/…" in status(work)["run"]["command"]
    assert not [file for file in work.rglob("*") if file.is_file() and holds_secret(file)]
    kill(work)
    server.start()
    begun = begin()
    assert begun.returncode == 0, begun.stderr
    count += send(udp(n) for n in range(count, count + 30))
    done = run("stop", "--work-dir", work)
    assert done.returncode == 0, done.stderr
    assert f"{count} rows sent to http://127.0.0.1:{server.port}/…\n" in done.stdout
    assert sorted(numbers(out, "csv")) == list(range(count))
    assert [(number, row["id"]) for _, number, row in server.rows] == [
        (each + 1, number) for each, number in enumerate(numbers(out, "csv"))
    ]
    assert len(server.keys) == len(set(server.keys))


def test_a_killed_run_sends_each_event_of_an_alert_once(
    work: Path, tmp_path: Path, server: HookServer
) -> None:
    # Each packet is raised in its second, and cleared in the next one.
    alert = Expected("seen", "query", "time", ("id",), "", None, 1, None, 1, True, 1)
    out = tmp_path / "out"
    url = f"http://127.0.0.1:{server.port}/"
    begin = partial(detached, work, "-w", out, "--to", url, "--alert", f"{alert.text} by id")
    begun = begin()
    assert begun.returncode == 0, begun.stderr
    file = out / "query.csv"
    count = send(udp(n) for n in range(20))
    wait_for(lambda: file.read_text().count("\n") == count + 1, "the first rows in the file")
    server.kill()
    count += send(udp(n) for n in range(count, count + 30))
    wait_for(lambda: file.read_text().count("\n") == count + 1, "further rows in the file")
    kill(work)
    server.start()
    begun = begin()
    assert begun.returncode == 0, begun.stderr
    count += send(udp(n) for n in range(count, count + 30))
    # No packet follows: punctuation alone says that the last seconds are over.
    wait_for(lambda: len(server.rows) == 2 * count, "the events of all packets")
    done = run("stop", "--work-dir", work)
    assert done.returncode == 0, done.stderr
    rows = rows_of(file)
    assert sorted(row["id"] for row in rows) == list(range(count))
    assert ordered(found for _, _, found in server.rows) == alert.events(rows, IN_SILENCE)
    assert [number for _, number, _ in server.rows] == list(range(1, 2 * count + 1))


def test_an_alert_is_cleared_after_the_traffic_has_stopped_also_by_a_resumed_run(
    work: Path, tmp_path: Path, server: HookServer
) -> None:
    alert = Expected("busy", "query", "tb", ("srcPort",), "n", (">", 1), 1, ("<=", 1), 2, True, 1)
    counts = "SELECT tb, srcPort, count(*) AS n FROM UDP GROUP BY time AS tb, srcPort"
    out = tmp_path / "out"
    url = f"http://127.0.0.1:{server.port}/"
    arguments = ("run", "-e", counts, "-i", DEVICE, "-w", out, "--to", url, "--alert", alert.text)
    begin = partial(run, *arguments, "-d", "--run", "busy", "--work-dir", work)
    begun = begin()
    assert begun.returncode == 0, begun.stderr
    send(udp(0) for _ in range(6))
    wait_for(lambda: server.rows, "the event that it is raised")
    # It would be cleared in two seconds, of which no process sees the first.
    kill(work)
    begun = begin()
    assert begun.returncode == 0, begun.stderr
    wait_for(lambda: len(server.rows) > 1, "the event that it is cleared")
    wait_for(lambda: status(work)["alerts"][0]["raised_keys"] == 0, "the status")
    done = run("stop", "--work-dir", work)
    assert done.returncode == 0, done.stderr
    expected = alert.events(rows_of(out / "query.csv"), IN_SILENCE)
    assert [found["event"] for found in expected] == ["raised", "cleared"]
    assert [each[1:] for each in server.rows] == list(enumerate(expected, 1))
    # A request whose answer came, but not its record, is repeated with the same key.
    assert len(set(server.keys)) == len(expected)
