"""Recordings: agents that capture for a run which reads them later, or never."""

from __future__ import annotations

import csv
import signal
import socket
from collections import Counter
from typing import TYPE_CHECKING

import dpkt
import pytest
from tests.capture.sources.af_packet.network import DEVICE, own_network, run_ip
from tests.cli.agent.agents import AgentProcess
from tests.docs.traffic import write_links
from tests.faults.faulty_run import Sender, number_of
from tests.support.certificates import token_file
from tests.support.gscope_command import run, wait_for
from tests.support.long_form import cases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from subprocess import CompletedProcess

pytestmark = pytest.mark.slow

QUERY = "DEFINE { query_name packets; } SELECT time, srcIP FROM UDP"
"""Its answers need no Spark."""


class Recorded:
    """Agents, and runs that read them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.agents: list[AgentProcess] = []
        token_file(folder)

    def add(self, name: str, *words: str | Path) -> AgentProcess:
        self.agents.append(AgentProcess(self.folder, name, *words))
        return self.agents[-1]

    def run(self, *words: str | Path, name: str = "friday") -> CompletedProcess[str]:
        return run(
            *("run", "-e", QUERY, "--run", name, "--work-dir", self.folder / "work"),
            *("--token-file", self.folder / "token", *words),
            *(word for agent in self.agents for word in ("--host", agent.host)),
        )

    def sources(self) -> list[str]:
        with (self.folder / "out" / "packets.csv").open(newline="") as file:
            return [row["srcIP"] for row in csv.DictReader(file)]

    def captures(self, agent: AgentProcess) -> list[Path]:
        return list((agent.work_dir / "agent" / "captures").iterdir())


def udp_sources(path: Path) -> list[str]:
    """Return the sources of the UDP packets of a capture, by dpkt."""
    found = []
    with path.open("rb") as file:
        for _, data in dpkt.pcap.Reader(file):
            packet = dpkt.ethernet.Ethernet(data).data
            if isinstance(packet.data, dpkt.udp.UDP):
                family = socket.AF_INET if isinstance(packet, dpkt.ip.IP) else socket.AF_INET6
                found.append(socket.inet_ntop(family, packet.src))
    return found


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    made = Recorded(tmp_path)
    yield made
    for agent in made.agents:
        agent.close()


@pytest.mark.parametrize("is_killed", cases([False], [True]))
def test_a_recording_is_answered_later(recorded: Recorded, is_killed: bool) -> None:
    """The agent forgets captures after a second, but not a recording, and outlives a kill."""
    write_links(recorded.folder)
    capture = recorded.folder / "up.pcap"
    agent = recorded.add("a", "--allow-capture", capture, "--forget-after", "1s")
    found = recorded.run("--record")
    assert (found.returncode, "host a: recorded" in found.stderr) == (0, True), found.stderr
    if is_killed:
        agent.kill()
        agent.start_again()
        wait_for(lambda: "complete" in agent.reported, "the recording of the agent before")
    found = recorded.run("-o", "csv", "-w", recorded.folder / "out")
    assert found.returncode == 0, found.stderr
    assert recorded.sources() == udp_sources(capture)
    agent.await_forgotten()
    # The rows are those of the recording, and not of another replay.
    assert "has not been heard" not in agent.reported
    assert ": requested for" not in agent.reported


@pytest.mark.long
def test_a_recording_is_discarded_with_its_run(recorded: Recorded) -> None:
    write_links(recorded.folder)
    agent = recorded.add("a", "--allow-capture", recorded.folder / "up.pcap")
    assert recorded.run("--record").returncode == 0
    again = recorded.run("--record")
    assert (again.returncode, "run friday exists" in again.stderr) == (2, True), again.stderr
    assert len(recorded.captures(agent)) == 1
    stopped = run("stop", "friday", "--work-dir", recorded.folder / "work")
    assert "been recorded; removed its folder" in stopped.stdout
    agent.await_forgotten()
    assert not list((recorded.folder / "work").iterdir())


@pytest.mark.long
def test_if_a_host_cannot_record_none_does(recorded: Recorded) -> None:
    write_links(recorded.folder)
    agent = recorded.add("a", "--allow-capture", recorded.folder / "up.pcap")
    gone = recorded.folder / "down.pcap"
    recorded.add("b", "--allow-capture", gone)
    gone.unlink()
    found = recorded.run("--record")
    assert found.returncode == 1, found.stderr
    assert "host b cannot record: " in found.stderr
    assert str(gone) in found.stderr
    agent.await_forgotten()
    assert not list((recorded.folder / "work").iterdir())


@pytest.mark.long
def test_a_recording_that_no_run_reads_is_discarded_in_the_end(recorded: Recorded) -> None:
    write_links(recorded.folder)
    capture = recorded.folder / "up.pcap"
    agent = recorded.add("a", "--allow-capture", capture, "--keep-recordings", "3s")
    assert recorded.run("--record").returncode == 0
    agent.await_forgotten()
    assert "no run has read it for 3 s" in agent.reported


@pytest.mark.long
@pytest.mark.live
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_device_is_recorded_across_agents(recorded: Recorded, end: signal.Signals) -> None:
    """An agent that is stopped loses nothing, one that is killed what it had not logged."""
    sender = Sender()
    with own_network():
        run_ip("link", "set", "lo", "up")
        agent = recorded.add("a", "--allow-interface", DEVICE)
        assert recorded.run("--record").returncode == 0
        sender.start()
        try:
            wait_for(lambda: sender.sent > 500, "packets")
            agent.stop() if end is signal.SIGTERM else agent.kill()
        finally:
            sender.stop()
        agent.start_again()
        if end is signal.SIGKILL:
            wait_for(lambda: "serving" in agent.reported, "the capture to go on")
            agent.stop()
            agent.start_again()
        wait_for(lambda: "complete" in agent.reported, "the recording of the agent before")
        found = recorded.run("-o", "csv", "-w", recorded.folder / "out")
    assert found.returncode == 0, found.stderr
    numbers = Counter(map(number_of, recorded.sources()))
    assert set(numbers.values()) == {1}, "a packet was answered twice"
    assert sorted(numbers) == list(range(len(numbers))), "a packet is missing in between"
    assert len(numbers) > (400 if end is signal.SIGTERM else 100)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--record", "--from", "127.0.0.1:1"), "--record is about the agents of --host"),
        (("--record", "--host", "a=127.0.0.1:1", "-w", "x"), "-w has no meaning with --record"),
    ],
)
def test_options_about_answers_do_not_go_with_a_recording(
    tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    found = run("run", "-e", QUERY, "--token-file", token_file(tmp_path), *words, cwd=tmp_path)
    assert (found.returncode, reason in found.stderr) == (2, True), found.stderr
