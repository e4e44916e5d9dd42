"""Modes of heartbeats of ``gscope run``, end to end on a busy and a silent device."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.sources.af_packet.network import DEVICE, own_network, run_ip, send
from tests.live.test_run import Live, udp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UNION = """DEFINE { query_name low; } SELECT timestamp, srcPort FROM one.UDP;
DEFINE { query_name high; } SELECT timestamp, srcPort FROM other.UDP;
DEFINE { query_name both; } MERGE low.timestamp : high.timestamp FROM low, high"""

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.fixture(autouse=True)
def network() -> Iterator[None]:
    with own_network():
        run_ip("link", "set", "lo", "up")
        run_ip("link", "add", "quiet_out", "type", "veth", "peer", "name", "quiet_in")
        run_ip("link", "set", "quiet_out", "up")
        run_ip("link", "set", "quiet_in", "up")
        yield


def started(folder: Path, mode: str, setting: str = "") -> Any:
    config = folder / "gscope.yaml"
    entries = f"one: {{device: {DEVICE}{setting}}}, other: {{device: quiet_in{setting}}}"
    config.write_text(f"interfaces: {{{entries}}}\n")
    live = Live("-e", UNION, "--config", config, "--heartbeat-mode", mode, "-o", "csv")
    live.wait_for_lines(1)
    return live


@pytest.mark.parametrize("setting", ["", ", timestamps: arrival, latent: true"])
def test_on_demand_a_silent_link_holds_nothing_up(tmp_path: Path, setting: str) -> None:
    live = started(tmp_path, "on-demand", setting)
    try:
        for number in range(3):
            send([udp(number)])
            live.wait_for_lines(2 + number)
    finally:
        code = live.end()
    assert code == 128 + signal.SIGINT
    assert "3 packets received = 3 accepted; 3 rows" in live.summary


def test_off_the_end_of_the_streams_releases_what_a_silent_link_held_up(tmp_path: Path) -> None:
    live = started(tmp_path, "off")
    send([udp(1), udp(2)])
    assert live.end() == 128 + signal.SIGINT
    assert len(live.lines) == 3
