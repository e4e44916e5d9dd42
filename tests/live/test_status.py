"""``gscope status`` beside a live run: what a device does is seen, and who is waited for."""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.sources.af_packet.network import DEVICE, own_network, run_ip
from tests.live.test_run import live, send_for  # noqa: F401  # a fixture
from tests.support.gscope_command import run, status, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.live, pytest.mark.slow]

QUERY = "SELECT tb, srcIP, count(*) AS packets FROM IP GROUP BY time/2 AS tb, srcIP"


@pytest.fixture(autouse=True)
def network() -> Iterator[None]:
    """Devices of our own; without the right to make them the test is skipped."""
    with own_network():
        run_ip("link", "set", "lo", "up")
        yield


def status_of_all(work: Path) -> dict[str, Any]:
    """The status once all processes are in it."""

    def whole() -> dict[str, Any] | None:
        document = status(work)
        return document if document.get("capture") and document.get("job") else None

    found: dict[str, Any] = wait_for(whole, "the status of all processes")
    return found


def interface(work: Path, what: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The report on the device as soon as the condition holds."""

    def is_so() -> dict[str, Any] | None:
        (reported,) = status_of_all(work)["capture"]["interfaces"]
        return reported if what(reported) else None

    found: dict[str, Any] = wait_for(is_so, "that of the interface")
    return found


def test_a_device_its_privileges_and_its_metrics_are_seen(
    live: Any,  # noqa: F811  # the fixture
    tmp_path: Path,
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = live(
        *("-e", QUERY, "-i", f"main={DEVICE}", "--work-dir", tmp_path, "--metrics", str(port))
    )
    sending = threading.Thread(target=send_for, args=(4,))
    sending.start()
    reported = interface(tmp_path, lambda each: each["packets_per_second"] > 0)
    sending.join()
    assert (reported["name"], reported["device"], reported["state"]) == ("main", DEVICE, "up")
    assert reported["largest_lag_ns"] > 0
    document = json.loads(run("status", "--work-dir", tmp_path, "--json").stdout)
    privileges = document["capture"]["privileges"]
    assert (privileges["capabilities"], privileges["no_new_privs"]) == (0, True)
    assert [each["difference"] for each in document["loss"]["interfaces"]] == [0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        assert 'gscope_interface_up{interface="main"} 1.0' in answer.read().decode()
    run_ip("link", "set", DEVICE, "down")
    assert interface(tmp_path, lambda each: each["state"] == "down")["interruptions_total"] == 1
    assert " down " in run("status", "--work-dir", tmp_path).stdout
    running.end()
    assert run("status", "--work-dir", tmp_path).returncode == 1
