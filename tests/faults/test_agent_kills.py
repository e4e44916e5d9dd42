"""``kill -9`` of an agent, or of the run that reads it.

What agents logged is answered once, and the rest is marked.
"""

from __future__ import annotations

import csv
import json
import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.sources.af_packet.network import DEVICE
from tests.cli.agent.agents import AgentProcess
from tests.faults.faulty_run import Sender, number_of
from tests.faults.kept_log import KeptLog
from tests.support.certificates import token_file
from tests.support.gscope_command import PATIENCE_S, command, descendants, is_alive, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.live, pytest.mark.slow]

PACKETS = """
DEFINE { query_name packets_a; } SELECT time, srcIP FROM a.up.UDP;
DEFINE { query_name packets_b; } SELECT time, srcIP FROM b.up.UDP
"""
SECONDS = """
DEFINE { query_name seconds; } SELECT tb, interface, count(*) AS packets FROM up.UDP
GROUP BY time AS tb, interface
"""
ROWS_BETWEEN_KILLS = 100


class Hosts:
    """Agents a and b, which share the packets of one device, and a run that reads both."""

    def __init__(self, folder: Path, query: str, *options: str) -> None:
        token = token_file(folder)
        self.agents: dict[str, AgentProcess] = {}
        self.folder = folder
        for bit, name in enumerate("ab"):
            config = folder / f"{name}.yaml"
            config.write_text(
                f"interfaces: {{up: {{device: {DEVICE}, filter: 'ip[15] & 1 = {bit}'}}}}"
            )
            self.agents[name] = AgentProcess(folder, name, "--config", config)
        self.work_dir = folder / "work"
        self._error = folder / "run.err"
        words: list[str | Path] = [
            *("run", "-e", query, "-o", "csv", "-w", folder / "out", "--run", "hosts"),
            *("--work-dir", self.work_dir, "--token-file", token),
            *options,
        ]
        for each in self.agents.values():
            words += ["--host", each.host]
        self._words = words
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._error.open("ab") as error:
            return subprocess.Popen(command(*self._words), stderr=error)

    def kill_run(self) -> None:
        """Kill the run, wait until its processes have ended as well, and resume it."""
        children = descendants(self._process.pid)
        self._process.kill()
        self._process.wait()
        wait_for(lambda: not any(map(is_alive, children)), "the end of the run's processes")
        self._process = self._started()

    def processes(self) -> set[int]:
        """The processes of the run and of both agents."""
        own = {self._process.pid, *descendants(self._process.pid)}
        return own.union(*(agent.processes() for agent in self.agents.values()))

    @property
    def reported(self) -> str:
        return self._error.read_text()

    def rows(self, query: str) -> list[dict[str, str]]:
        try:
            with (self.folder / "out" / f"{query}.csv").open(newline="") as file:
                return [row for row in csv.DictReader(file) if None not in row.values()]
        except FileNotFoundError:
            return []

    def await_rows(self, query: str, rows: int) -> None:
        wanted = len(self.rows(query)) + rows

        def have_come() -> bool:
            assert self._process.poll() is None, self.reported
            return len(self.rows(query)) >= wanted

        wait_for(have_come, f"{rows} more rows of {query}")

    def log_of(self, name: str) -> Path:
        """Return the log of the capture of an agent."""

        def found() -> Path | None:
            return next(self.agents[name].work_dir.glob("run-*/log"), None)

        path: Path = wait_for(found, f"a log of agent {name}")
        return path

    def end(self) -> None:
        """Stop the agents; the run ends when it has all rows."""
        for agent in self.agents.values():
            assert agent.stop() == 0, agent.reported
        assert self._process.wait(PATIENCE_S) == 0, self.reported

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for agent in self.agents.values():
            agent.close()


@pytest.fixture
def packets(network: None, tmp_path: Path) -> Iterator[Hosts]:
    made = Hosts(tmp_path, PACKETS)
    yield made
    made.close()


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.long)])
def test_what_a_killed_agent_had_logged_is_answered_once(
    packets: Hosts, sender: Sender, tmp_path: Path, rounds: int
) -> None:
    """The answers need no Spark, so that the test takes seconds."""
    sender.start()
    packets.await_rows("packets_b", 1)
    kept = KeptLog(packets.log_of("b"), tmp_path / "kept")
    try:
        for _ in range(rounds):
            packets.await_rows("packets_b", ROWS_BETWEEN_KILLS)
            packets.agents["b"].kill()
            packets.agents["b"].start_again()
        packets.await_rows("packets_b", ROWS_BETWEEN_KILLS)
        sender.stop()
        packets.end()
    finally:
        kept.stop()
    answered = {
        name: Counter(number_of(row["srcIP"]) for row in packets.rows(f"packets_{name}"))
        for name in "ab"
    }
    assert set(answered["b"].values()) == {1}, "a packet was answered twice"
    assert answered["b"].total() == kept.tuples("packets_b@b.up")
    # Agent a was never killed: of its packets none is missing in between.
    numbers = sorted(answered["a"])
    assert set(answered["a"].values()) == {1}
    assert numbers == list(range(numbers[0], numbers[-1] + 1, 2))
    assert "packets_b lacks b" in packets.reported
    assert "lacks a" not in packets.reported


@pytest.mark.long
@pytest.mark.parametrize("rounds", [1, 10])
def test_a_killed_run_goes_on_where_it_was(
    packets: Hosts, sender: Sender, tmp_path: Path, rounds: int
) -> None:
    """Agents capture on while there is no run: no packet between the first and the last is lost."""
    sender.start()
    packets.await_rows("packets_b", 1)
    kept = {name: KeptLog(packets.log_of(name), tmp_path / f"kept-{name}") for name in "ab"}
    try:
        for _ in range(rounds):
            packets.await_rows("packets_b", ROWS_BETWEEN_KILLS)
            packets.kill_run()
        packets.await_rows("packets_b", ROWS_BETWEEN_KILLS)
        sender.stop()
        packets.end()
    finally:
        for each in kept.values():
            each.stop()
    for name in "ab":
        answered = Counter(number_of(row["srcIP"]) for row in packets.rows(f"packets_{name}"))
        assert set(answered.values()) == {1}, "a packet was answered twice"
        numbers = sorted(answered)
        assert numbers == list(range(numbers[0], numbers[-1] + 1, 2)), "a packet was lost"
        assert answered.total() == kept[name].tuples(f"packets_{name}@{name}.up")
    assert "lacks" not in packets.reported


@pytest.fixture
def seconds(network: None, tmp_path: Path) -> Iterator[Hosts]:
    made = Hosts(tmp_path, SECONDS, "--failure-timeout", "2s", "--absent-after", "4s")
    yield made
    made.close()


def marks(hosts: Hosts) -> list[dict[str, Any]]:
    """Return what the last commit of the job says that the answers lack."""
    commits = sorted((hosts.work_dir / "run-hosts" / "job" / "commits").glob("*.json"))
    found: list[dict[str, Any]] = json.loads(commits[-1].read_text())["operators"]["seconds"][
        "partial"
    ]
    return found


@pytest.mark.long
def test_epochs_that_lack_a_killed_agent_are_those_that_are_marked(
    seconds: Hosts, sender: Sender
) -> None:
    """The run goes on without agent b, which returns after a while."""

    def answered() -> dict[str, set[int]]:
        found: dict[str, set[int]] = {"a.up": set(), "b.up": set()}
        for row in seconds.rows("seconds"):
            found[row["interface"]].add(int(row["tb"]))
        return found

    def latest(interface: str) -> int:
        return max(answered()[interface], default=0)

    sender.start()
    wait_for(lambda: latest("b.up"), "answers of both hosts")
    seconds.agents["b"].kill()
    # Answers may be seconds behind.
    killed = int(time.time())
    wait_for(lambda: latest("a.up") >= killed + 10, "answers without agent b")
    assert any(each["host"] == "b" for each in marks(seconds))
    seconds.agents["b"].start_again()
    wait_for(lambda: latest("b.up") > killed + 8, "answers with agent b again")
    returned = latest("b.up")
    wait_for(lambda: latest("a.up") >= returned + 3, "further answers")
    found = marks(seconds)
    last = latest("a.up")
    assert {each["host"] for each in found} == {"b"}
    marked = {
        epoch
        for each in found
        for epoch in range(each["first_epoch"], min(each["last_epoch"] or last, last) + 1)
    }
    by_host = answered()
    # One agent may begin seconds before the other.
    begun = min(by_host["b.up"])
    lacking = {epoch for epoch in by_host["a.up"] - by_host["b.up"] if begun < epoch < last}
    # What has no row of b is marked. In the epochs at both ends b has captured a part.
    assert lacking <= marked
    assert len(marked - lacking) <= 2
    assert len(lacking) >= 8
    sender.stop()
    seconds.end()
    assert "seconds lacks b from" in seconds.reported
