"""Hosts among which packets are divided by a set answer what the set permits: rows as of one host."""

from __future__ import annotations

import csv
import zlib
from collections import Counter
from typing import TYPE_CHECKING

import dpkt
import pytest
from tests.cli.agent.agents import AgentProcess
from tests.support.certificates import make_certificate, token_file
from tests.support.gscope_command import run
from tests.support.requirements import CAPTURES, needs, needs_captures

from gscope.capture.log.log import read_log
from gscope.queries.plan.program_file import read_program
from gscope.queries.run_folder.layout import LOG_FOLDER, PROGRAM_FILE
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs("openssl"), needs_captures]

CAPTURE = CAPTURES / "ndpi-pcap-1kxun.pcap"

QUERIES = """
DEFINE { query_name flows; } SELECT tb, srcIP, destIP, protocol, count(*) AS packets,
sum(len) AS bytes, avg(len) AS mean FROM IP GROUP BY time/10 AS tb, srcIP, destIP, protocol;
DEFINE { query_name pairs; } SELECT tb, srcIP, destIP, sum(packets) AS packets, count(*) AS kinds
FROM flows GROUP BY tb, srcIP, destIP HAVING sum(packets) > 1;
DEFINE { query_name twice; } SELECT a.tb AS tb, a.srcIP, a.destIP, a.packets AS now, b.packets AS before
FROM pairs a LEFT OUTER JOIN pairs b ON a.srcIP = b.srcIP and a.destIP = b.destIP and a.tb = b.tb + 1;
DEFINE { query_name protocols; } SELECT tb, protocol, sum(packets) AS packets, sum(bytes) AS bytes
FROM flows GROUP BY tb, protocol
"""
DELIVERED = ("flows", "pairs", "twice", "protocols")


def divided(folder: Path, hosts: int) -> list[Path]:
    """Divide the packets of ``CAPTURE`` by both addresses; other packets go to the first host."""
    paths = [folder / f"{number}" / "link.pcap" for number in range(hosts)]
    for path in paths:
        path.parent.mkdir()
    files = [path.open("wb") for path in paths]
    with CAPTURE.open("rb") as file:
        reader = dpkt.pcap.Reader(file)
        writers = [dpkt.pcap.Writer(each, linktype=reader.datalink()) for each in files]
        for time_s, frame in reader:
            packet = dpkt.ethernet.Ethernet(frame).data
            is_ip = isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6)
            number = zlib.crc32(packet.src + packet.dst) % hosts if is_ip else 0
            writers[number].writepkt(frame, time_s)
    for each in files:
        each.close()
    return paths


class Hosts:
    """Two agents, which replay the two parts of a capture."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        token_file(folder)
        tls = make_certificate(folder, "host")
        self.certificate = tls.certificate
        served = ("--tls-certificate", tls.certificate, "--tls-key", tls.key)
        self.agents = [
            AgentProcess(folder, name, *served, "--allow-capture", path)
            for name, path in zip("ab", divided(folder, 2), strict=True)
        ]

    def answered(self, name: str, *words: str) -> tuple[dict[str, list[tuple[str, ...]]], str]:
        """Answer ``QUERIES``; return the rows of each answer, and what was reported."""
        out = self.folder / name
        found = run(
            *("run", "-e", QUERIES, "-o", "csv", "-w", out, "--work-dir", self.folder / "work"),
            *("--token-file", self.folder / "token", "--tls-ca", self.certificate),
            *(word for agent in self.agents for word in ("--host", agent.host)),
            *(word for each in DELIVERED for word in ("--deliver", each)),
            *("--run", name, *words),
        )
        assert found.returncode == 0, found.stderr
        for agent in self.agents:
            agent.await_forgotten()
        return {each: rows_of(out / f"{each}.csv") for each in DELIVERED}, found.stderr

    def close(self) -> None:
        for agent in self.agents:
            agent.close()


def served_to(hosts: Hosts, name: str, *words: str) -> tuple[str, ...]:
    """Return the LFTAs whose rows a run has recorded on its hosts."""
    work_dir, certificate = hosts.folder / "recorded", str(hosts.certificate)
    token = str(hosts.folder / "token")
    common = ("--run", name, "--work-dir", str(work_dir), "--token-file", token)
    found = run(
        *("run", "-e", QUERIES, *words, "--record", *common, "--tls-ca", certificate),
        *(word for agent in hosts.agents for word in ("--host", agent.host)),
    )
    assert found.returncode == 0, found.stderr
    served = tuple(
        each.name for each in read_program(work_dir / f"run-{name}" / PROGRAM_FILE).lftas
    )
    for agent in hosts.agents:
        (log,) = (path / LOG_FOLDER for path in agent.work_dir.glob("run-*"))
        sent = {each.stream for each in read_log(log) if isinstance(each, Batch)}
        assert {each.rpartition("@")[0] for each in sent} >= set(served)
    assert run("stop", *common[:4]).returncode == 0
    return served


def rows_of(path: Path) -> list[tuple[str, ...]]:
    with path.open(newline="") as file:
        return [tuple(row) for row in list(csv.reader(file))[1:]]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    made = Hosts(tmp_path_factory.mktemp("answering"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[str, ...]]]:
    """The answers of one replay of the whole capture."""
    out = tmp_path_factory.mktemp("whole")
    found = run(
        *("replay", CAPTURE, "-e", QUERIES, "-o", "csv", "-w", out),
        *(word for each in DELIVERED for word in ("--deliver", each)),
    )
    assert found.returncode == 0, found.stderr
    return {each: rows_of(out / f"{each}.csv") for each in DELIVERED}


def test_hosts_answer_as_one(hosts: Hosts, whole: dict[str, list[tuple[str, ...]]]) -> None:
    found, reported = hosts.answered("by-addresses", "--partition-set", "srcIP, destIP")
    assert found == whole
    assert "protocols is evaluated here: it needs packets of several hosts" in reported
    packets: Counter[str] = Counter()
    with CAPTURE.open("rb") as file:
        for _, frame in dpkt.pcap.Reader(file):
            packet = dpkt.ethernet.Ethernet(frame).data
            if isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6):
                packets[str(packet.p)] += 1
    counted: Counter[str] = Counter()
    for _, protocol, count, _ in found["protocols"]:
        counted[protocol] += int(count)
    assert counted == packets


def test_hosts_that_answer_everything_send_answers_alone(hosts: Hosts) -> None:
    delivered = ("--deliver", "pairs", "--deliver", "twice")
    assert served_to(hosts, "all", *delivered, "--partition-set", "srcIP, destIP") == (
        "pairs.answers",
        "twice.answers",
    )
    assert served_to(hosts, "none", *delivered) == ("flows",)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--partition-set", "srcIP,"), "invalid partitioning set: a member is empty"),
        (("--partition-set", "time"), "packets cannot be divided by time"),
    ],
)
def test_a_wrong_set_is_an_error(hosts: Hosts, words: tuple[str, ...], message: str) -> None:
    found = run(
        *("run", "-e", QUERIES, "--token-file", hosts.folder / "token", "--host"),
        *(hosts.agents[0].host, "--tls-ca", str(hosts.certificate), *words),
    )
    assert found.returncode == 2
    assert message in found.stderr


def test_a_set_without_hosts_is_an_error() -> None:
    found = run("run", "-e", QUERIES, "-i", "lo", "--partition-set", "srcIP")
    assert found.returncode == 2
    assert "--partition-set is about the inputs of --from and --host" in found.stderr
