"""``kill -9`` of agents that answer queries themselves, and of the run that reads them."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.faults.faulty_run import Sender, number_of
from tests.faults.halts import halts
from tests.faults.test_agent_kills import Hosts
from tests.support.gscope_command import is_alive, status, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.live, pytest.mark.slow]

NUMBERS = """
DEFINE { query_name numbers; } SELECT tb, srcIP, count(*) AS packets FROM up.UDP
GROUP BY time AS tb, srcIP
"""
"""Each packet has a source address of its own, whose lowest bit says which agent captures it."""

ROWS_BETWEEN_KILLS = 400
_JOB, _DAEMON = "gscope.engine.job", "gscope.capture.daemon"
_MARKED = re.compile(r"(\d{9,})(?: to (\d{9,}))?(?=[,)])")
"""The epochs in the report of a run, as in ``(1795449727 to 1795449738, 1795449741)``."""


@pytest.fixture
def hosts(network: None, tmp_path: Path) -> Iterator[Hosts]:
    made = Hosts(tmp_path, NUMBERS, "--partition-set", "srcIP")
    yield made
    made.close()


def answered(hosts: Hosts) -> dict[int, int]:
    """Return the second in which each packet was answered; each once."""
    rows = hosts.rows("numbers")
    found = Counter(number_of(row["srcIP"]) for row in rows)
    assert set(found.values()) == {1}, "a row was answered twice"
    assert {row["packets"] for row in rows} == {"1"}
    return {number_of(row["srcIP"]): int(row["tb"]) for row in rows}


def lacking(seconds: dict[int, int], bit: int) -> list[int]:
    """Return the packets of one agent that are in no answer, between its first and its last."""
    own = [number for number in seconds if number & 1 == bit]
    return [number for number in range(min(own), max(own), 2) if number not in seconds]


def kill(hosts: Hosts, module: str) -> None:
    """Kill a process of agent b, and wait until it has ended."""
    agent = hosts.agents["b"]
    (found,) = [pid for pid, words in agent.children().items() if module in words]
    os.kill(found, signal.SIGKILL)
    wait_for(lambda: not is_alive(found), f"the end of {module}")


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.long)])
def test_a_killed_job_or_run_loses_nothing(hosts: Hosts, sender: Sender, rounds: int) -> None:
    sender.start()
    hosts.await_rows("numbers", 1)
    for number in range(rounds):
        hosts.await_rows("numbers", ROWS_BETWEEN_KILLS)
        if number % 2 == 0:  # the supervisor gives a job up that fails more often
            kill(hosts, _JOB)
        hosts.await_rows("numbers", ROWS_BETWEEN_KILLS)
        hosts.kill_run()
    hosts.await_rows("numbers", ROWS_BETWEEN_KILLS)
    sender.stop()
    hosts.end()
    seconds = answered(hosts)
    last = {bit: max(number for number in seconds if number & 1 == bit) for bit in (0, 1)}
    assert not lacking(seconds, 0), f"agent a lost packets before {last[0]}: {hosts.reported}"
    assert not lacking(seconds, 1), f"agent b lost packets before {last[1]}: {hosts.reported}"
    assert "lack" not in hosts.reported


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_processes_that_stand_still_lose_nothing(hosts: Hosts, sender: Sender, seed: int) -> None:
    """Also while the job of an agent and the run are killed."""
    sender.start()
    hosts.await_rows("numbers", 1)
    with halts(hosts.processes, seed) as halted:
        hosts.await_rows("numbers", ROWS_BETWEEN_KILLS)
        kill(hosts, _JOB)
        hosts.await_rows("numbers", 3 * ROWS_BETWEEN_KILLS)
        hosts.kill_run()
        hosts.await_rows("numbers", 3 * ROWS_BETWEEN_KILLS)
    assert len(halted) >= 10
    sender.stop()
    hosts.end()
    seconds = answered(hosts)
    for bit in (0, 1):
        assert not lacking(seconds, bit), hosts.reported
    assert "lack" not in hosts.reported


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.long)])
def test_a_killed_agent_answers_nothing_twice_and_marks_what_it_lacks(
    hosts: Hosts, sender: Sender, rounds: int
) -> None:
    sender.start()
    hosts.await_rows("numbers", 1)
    for number in range(rounds):
        hosts.await_rows("numbers", ROWS_BETWEEN_KILLS)
        if number % 2 == 0:  # the supervisor gives a daemon up that fails more often
            kill(hosts, _DAEMON)
            hosts.await_rows("numbers", ROWS_BETWEEN_KILLS)
        hosts.agents["b"].kill()
        hosts.agents["b"].start_again()
    hosts.await_rows("numbers", ROWS_BETWEEN_KILLS)
    (shown,) = wait_for(lambda: status(hosts.work_dir).get("answered"), "marks in the status")
    sender.stop()
    hosts.end()
    seconds = answered(hosts)
    assert not lacking(seconds, 0), "a packet of agent a was lost"
    marked = {
        second
        for first, last in _MARKED.findall(hosts.reported)
        for second in range(int(first), int(last or first) + 1)
    }
    assert shown["name"] == "numbers"
    if "(…" not in hosts.reported:
        ranges = [(each["first"], each["last"]) for each in shown["incomplete_epochs"]]
        assert marked.issuperset(second for a, b in ranges for second in range(a, b + 1))
    missing = lacking(seconds, 1)
    if "(…" in hosts.reported:
        # Only the latest ranges are reported.
        missing = [number for number in missing if seconds[number - 1] > min(marked)]
    assert missing, "the agent was killed without a loss"
    # The packets before and behind a missing one, of agent a, say when it came.
    unmarked = [
        number
        for number in missing
        if not marked & {seconds[number - 1], seconds.get(number + 1, seconds[number - 1])}
    ]
    assert not unmarked
    assert len(marked) <= len({seconds[number - 1] for number in missing}) + 8 * rounds
