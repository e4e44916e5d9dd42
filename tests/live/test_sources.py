"""Sources and filters of ``gscope run``, end to end on devices of the test's own."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest
from tests.capture.sources.af_packet.network import DEVICE, SENDER, add_pair, run_ip, send
from tests.live.test_run import (
    PACKETS,
    live,
    network,
    udp,
)
from tests.support.gscope_command import run

pytestmark = [pytest.mark.live, pytest.mark.slow]

__all__ = ["live", "network"]

OTHER_SENDER, OTHER_DEVICE = "other_out", "other_in"


def icmp(number: int) -> bytes:
    """As ``udp``, but of another protocol."""
    frame = udp(number)
    return frame[:23] + b"\x01" + frame[24:]


def add_other() -> None:
    run_ip("link", "add", OTHER_SENDER, "type", "veth", "peer", "name", OTHER_DEVICE)
    run_ip("link", "set", OTHER_SENDER, "up")
    run_ip("link", "set", OTHER_DEVICE, "up")


def test_what_no_query_wants_is_left_out_by_the_kernel_unless_forbidden(live: Any) -> None:
    counts = (((), 5), (("--no-kernel-filter",), 9))
    runs = [live("-e", PACKETS, "-i", DEVICE, *options) for options, _ in counts]
    send([*(udp(number) for number in range(5)), *(icmp(number) for number in range(4))])
    for running, (_, counted) in zip(runs, counts, strict=True):
        running.wait_for_lines(6)
        assert running.end() == 128 + signal.SIGINT
        assert f"{counted} packets received = {counted} accepted; 5 rows" in running.summary


def test_scapy_captures_when_it_is_asked_to(live: Any) -> None:
    running = live("-e", PACKETS, "-i", DEVICE, "--source", "scapy")
    send(udp(number) for number in range(3))
    running.wait_for_lines(4)
    assert running.end() == 128 + signal.SIGINT
    assert "3 packets received = 3 accepted; 3 rows" in running.summary


def test_hardware_timestamps_that_are_not_offered_are_one_sentence() -> None:
    done = run("run", "-e", PACKETS, "-i", DEVICE, "--timestamps", "hardware")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{DEVICE} cannot timestamp all packets" in done.stderr


def test_an_interface_that_comes_back_goes_on(live: Any) -> None:
    running = live("-e", PACKETS, "-i", DEVICE)
    send([udp(1)])
    running.wait_for_lines(2)
    for is_down in (True, False):
        if is_down:
            run_ip("link", "set", DEVICE, "down")
            run_ip("link", "set", DEVICE, "up")
        else:
            run_ip("link", "del", SENDER)
            add_pair()
        before = len(running.lines)
        for _ in range(100):
            # The first may come before the device is captured again.
            send([udp(2)])
            if len(running.lines) > before:
                break
            threading.Event().wait(0.1)
        assert len(running.lines) > before
    assert running.end() == 128 + signal.SIGINT
    assert "vanished" not in running.summary


def test_an_interface_that_is_gone_for_good_fails_alone(live: Any) -> None:
    add_other()
    text = PACKETS.replace("SELECT", "SELECT interface,")
    running = live("-e", text, "-i", f"one={DEVICE}", "-i", f"other={OTHER_DEVICE}")
    send([udp(1)])
    send([udp(1)], OTHER_SENDER)
    running.wait_for_lines(3)
    run_ip("link", "del", OTHER_SENDER)
    send([udp(2)])
    running.wait_for_lines(4)
    assert running.end() == 1
    assert (
        f"gscope: interface other: {OTHER_DEVICE} vanished and has not come back" in running.summary
    )
    assert sum(b"one" in line for line in running.lines) == 2
