"""``kill -9`` of every process of a live run at random moments.

Nothing logged is lost, nothing is answered twice. ``--kill-rounds N`` kills N times, by default
once each process.
"""

from __future__ import annotations

import itertools
import random
import signal
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.af_packet.network import DEVICE, run_ip
from tests.faults.faulty_run import PACKETS, PROCESS_OF, FaultyRun, Sender

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.usefixtures("network"),
]

VICTIMS = (
    ("java", "job", "daemon", "supervisor"),
    ("job", "java", "job", "java"),
    ("daemon", "supervisor", "job", "daemon"),
    ("supervisor", "daemon", "java", "supervisor"),
)
"""Whom to kill in a run; more of one process within minutes would be given up, as they should."""

MOST_LINES = 400
"""At most this number of rows between two kills: two seconds of them, more on a busy machine."""


def ensure_answered_once(run: FaultyRun, sent: int) -> None:
    """What the log held is answered, once, and nothing else."""
    packets = run.answered_packets()
    assert set(packets.values()) <= {1}, "a packet was answered twice"
    assert set(packets) <= set(range(sent))
    assert packets.total() == run.log.tuples("packets@main")
    assert run.answered_flows() == run.logged_flows()


def ensure_sum(run: FaultyRun) -> int:
    """The summary's sum closes; the packets received."""
    line = next(line for line in run.reported.splitlines() if " received = " in line)
    head, _, rest = line.removeprefix("gscope: ").partition(" received = ")
    received = int(head.split()[0].replace(",", ""))
    terms = [int(term.split()[0].replace(",", "")) for term in rest.split(";")[0].split(" + ")]
    assert received == sum(terms), line
    return received


def test_killed_processes_are_started_again_and_the_answer_is_whole(
    tmp_path: Path, kill_rounds: int
) -> None:
    rng = random.Random(kill_rounds)
    runs = itertools.cycle(VICTIMS)
    while kill_rounds > 0:
        victims = next(runs)[:kill_rounds]
        run, sender = FaultyRun(tmp_path / str(kill_rounds)), Sender()
        try:
            kill_in_a_row(run, sender, victims, rng)
        finally:
            sender.stop()
            run.close()
        kill_rounds -= len(victims)


def kill_in_a_row(
    run: FaultyRun, sender: Sender, victims: Sequence[str], rng: random.Random
) -> None:
    run.start()
    sender.start()
    run.wait_for_lines(50)
    for victim in victims:
        run.wait_for_lines(rng.randint(0, MOST_LINES))
        if victim == "supervisor":
            run.kill_all()
            run.start()
        else:
            run.kill(victim)
    run.wait_for_lines(50)
    record = run.record["processes"]
    sender.stop()
    assert run.end() == 128 + signal.SIGINT
    for process in ("capture", "job"):
        kills = sum(PROCESS_OF.get(victim) == process for victim in victims)
        assert record[process]["restarts_total"] == kills, run.reported
        assert all("signal SIGKILL" in each["reason"] for each in record[process]["restarts"])
        assert run.reported.count(f"{process_title(process)} ") >= kills
    ensure_answered_once(run, sender.sent)
    received = ensure_sum(run)
    if not {"daemon", "supervisor"} & set(victims):
        assert received == sender.sent == len(run.answered_packets())
        assert sum(run.answered_flows().values()) == sender.sent
    else:
        assert "no packets were captured for" in run.reported
        assert "may lack rows or packets: the capture daemon was restarted" in run.reported
        assert received >= len(run.answered_packets())


def process_title(process: str) -> str:
    return {"capture": "the capture daemon", "job": "the HFTA job"}[process]


def test_a_daemon_that_is_halted_is_started_again(tmp_path: Path, sender: Sender) -> None:
    run = FaultyRun(tmp_path, "--failure-timeout", "4s", queries=(PACKETS,))
    try:
        run.start()
        sender.start()
        run.wait_for_lines(20)
        run.kill("daemon", signal.SIGSTOP)
        run.wait_for_lines(20)
        sender.stop()
        assert run.end() == 128 + signal.SIGINT
        assert "the capture daemon did not respond for" in run.reported
        ensure_answered_once(run, sender.sent)
    finally:
        run.close()


def test_an_interface_that_goes_down_and_comes_up_goes_on(tmp_path: Path, sender: Sender) -> None:
    run = FaultyRun(tmp_path, queries=(PACKETS,))
    try:
        run.start()
        sender.start()
        run.wait_for_lines(20)
        run_ip("link", "set", DEVICE, "down")
        run.wait_for_state("down")
        run_ip("link", "set", DEVICE, "up")
        run.wait_for_packet(sender.sent)
        assert run.restarts("capture") == 0
        sender.stop()
        assert run.end() == 128 + signal.SIGINT
        ensure_answered_once(run, sender.sent)
    finally:
        run.close()


def test_a_daemon_that_is_killed_while_a_device_is_gone_goes_on_with_the_others(
    tmp_path: Path, sender: Sender
) -> None:
    run_ip("link", "add", "other_out", "type", "veth", "peer", "name", "other_in")
    run = FaultyRun(tmp_path, "-i", "other=other_in", queries=(PACKETS,))
    try:
        run.start()
        sender.start()
        run.wait_for_lines(20)
        run_ip("link", "del", "other_out")
        run.kill("daemon")
        run.wait_for_lines(20)
        reported = run.status["capture"]["interfaces"]
        assert [each["state"] for each in reported] == ["up", "gone"]
        sender.stop()
        assert run.end() == 1
        gone = "interface other: other_in was missing when the capture daemon was restarted"
        assert f"gscope: {gone}; no longer captured" in run.reported
        ensure_sum(run)
    finally:
        run.close()
