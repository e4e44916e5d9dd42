"""A UDP port that is received on for other hosts: by an agent, and by a sensor behind a relay."""

from __future__ import annotations

import csv
import signal
import socket
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.sources.flows.exports import v5, v5_record
from tests.capture.sources.udp.port import free_port, sender
from tests.cli.agent.agents import AgentProcess
from tests.faults.role import Role
from tests.live.test_run import live, network
from tests.live.test_udp import RECORDS
from tests.support.certificates import token_file
from tests.support.gscope_command import run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live.test_run import Live

pytestmark = [pytest.mark.live, pytest.mark.slow]

__all__ = ["live", "network"]

KNOWN = [v5_record(f"10.9.0.{n % 7}", counts=(1, 100 + n)) for n in range(300)]


def records_of(running: Live, port: int) -> list[dict[str, str]]:
    """Send records of which some come before the port is open, then ``KNOWN``.

    Return the rows of these.
    """
    number = 0

    def is_there(wanted: str) -> bool:
        return any(wanted.encode() in line for line in running.lines)

    with sender(port) as send:

        def send_one() -> None:
            nonlocal number
            number += 1
            send([v5([v5_record("10.8.0.1")], number)])

        running.wait_for(lambda: is_there(",10.8.0.1,"), send_one)
        send(v5(KNOWN[at : at + 30], number + 1 + at) for at in range(0, len(KNOWN), 30))
        send([v5([v5_record("10.7.0.1")], number + 1 + len(KNOWN))])
        running.wait_for(lambda: is_there(",10.7.0.1,"))
    rows = list(csv.DictReader(line.decode() for line in running.lines))
    return [row for row in rows if row["srcIP"].startswith("10.9.")]


def ensure_known(rows: list[dict[str, str]]) -> None:
    assert {row["exporter"] for row in rows} == {"127.0.0.1"}
    assert [(row["srcIP"], int(row["bytes"])) for row in rows] == [
        (f"10.9.0.{n % 7}", 100 + n) for n in range(len(KNOWN))
    ]


def test_an_agent_receives_for_the_runs_of_other_hosts(live: Any, tmp_path: Path) -> None:
    token_file(tmp_path)
    port = free_port()
    agent = AgentProcess(tmp_path, "edge", "--allow-interface", f"routers=udp://127.0.0.1:{port}")
    try:
        query = RECORDS.replace("FROM FLOW", "FROM edge.routers.FLOW")
        token = ("--token-file", tmp_path / "token")
        running = live("-e", query, "--host", agent.host, *token, "--work-dir", tmp_path / "run")
        ensure_known(records_of(running, port))
        # A port is received on once.
        more = ("--work-dir", tmp_path / "other", "-o", "csv")
        other = run("run", "-e", query, "--host", agent.host, *token, *more)
        assert other.returncode == 1
        assert f"another process receives on port {port}" in other.stderr
        assert running.end() == 128 + signal.SIGINT
        assert "dropped" not in running.summary
        agent.await_forgotten()
        # Its port is free again.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("127.0.0.1", port))
    finally:
        agent.close()


@pytest.mark.long
def test_a_relay_passes_the_records_of_a_sensor_on(live: Any, tmp_path: Path) -> None:
    token_file(tmp_path)
    port = free_port()
    places = [f"127.0.0.1:{_free_tcp_port()}" for _ in range(2)]
    query = ("-e", RECORDS)
    device = ("-i", f"routers=udp://127.0.0.1:{port}")
    roles = [
        Role(tmp_path, "sensor", ["run", *query, *device, "--no-job", "--listen", places[0]]),
        Role(tmp_path, "relay", ["relay", *query, "--from", places[0], "--listen", places[1]]),
    ]
    try:
        token = ("--token-file", tmp_path / "token")
        work = tmp_path / "run"
        running = live(*query, "--from", places[1], *token, "--work-dir", work)
        ensure_known(records_of(running, port))
        for role in roles:
            role.ensure_alive()
        roles[0].stop()
        assert running.wait() == 0
        assert [role.end() for role in roles] == [128 + signal.SIGTERM, 0]
        assert "dropped" not in running.summary
    finally:
        for role in roles:
            role.close()


def _free_tcp_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
