"""A user without any privilege collects flow records, on a port that such users may have."""

from __future__ import annotations

import csv
import json
import signal
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.answers.test_flow_records import unread_bytes
from tests.capture.sources.flows.exports import v5, v5_record
from tests.capture.sources.udp.port import free_port, sender
from tests.live.test_run import network
from tests.safety.ordinary_user import UID, User, user
from tests.support.gscope_command import descendants, wait_for
from tests.support.requirements import needs_root

pytestmark = [pytest.mark.live, pytest.mark.slow, needs_root]

__all__ = ["network", "user"]

RECORDS = "SELECT time, exporter, srcIP, bytes FROM FLOW"


def rows_of(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


@pytest.mark.long
def test_an_ordinary_user_collects_on_a_high_port(network: None, user: User) -> None:
    port = free_port()
    place = f"routers=udp://127.0.0.1:{port}"
    process = user.start("run", "-e", RECORDS, "-i", place, "-w", "answers", "-o", "csv")
    file = user.folder / "answers" / "query.csv"

    def has_ended() -> Any:
        assert process.poll() is None, process.communicate()

    wait_for(lambda: has_ended() or unread_bytes(port) is not None, "the port")
    number = 0
    with sender(port) as send:

        def has_rows() -> bool:
            nonlocal number
            number += 1
            send([v5([v5_record("10.8.0.1")], number)])
            return bool(rows_of(file))

        wait_for(has_rows, "a row of records that come while the port is opened")
        for at in range(10):
            send([v5([v5_record(f"10.9.0.{n}") for n in range(30)], number + 1 + 30 * at)])

    def known() -> list[str]:
        return [row["srcIP"] for row in rows_of(file) if row["srcIP"].startswith("10.9.")]

    wait_for(lambda: len(known()) >= 300, "all rows")
    assert known() == [f"10.9.0.{n}" for n in range(30)] * 10
    (daemon,) = [p for p, line in descendants(process.pid).items() if "capture.daemon" in line]
    found = status_of(daemon)
    assert set(found["Uid"].split()) == {str(UID)}
    assert {int(found[name], 16) for name in ("CapPrm", "CapEff", "CapAmb")} == {0}
    assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")

    def received() -> int:
        code, out, error = user.run("explain", "--run", "query", "--json")
        assert code == 0, error
        (interface,) = json.loads(out)["interfaces"]
        assert (interface["name"], interface["state"]) == ("routers", "up")
        return int(interface["packets"])

    wait_for(lambda: received() == len(rows_of(file)), "the counters of the records")
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGINT, error
    assert "dropped" not in error


@pytest.mark.parametrize("listens", ["udp://127.0.0.1:514", "udp://:162"])
def test_a_low_port_is_refused_with_what_helps(network: None, user: User, listens: str) -> None:
    code, out, error = user.run("run", "-e", RECORDS, "-i", listens, "-o", "csv")
    assert (code, out) == (1, "")
    assert f"cannot receive on {listens}: ports below 1024 require CAP_NET_BIND_SERVICE" in error
    assert "use a higher port, or" in error
    assert len(error.splitlines()) == 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 514))
