"""Hosts among which packets are divided by a set answer what the set permits.

Their rows are as of one host.
"""

from __future__ import annotations

import csv
import ipaddress
import zlib
from collections import Counter
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import dpkt
import pyarrow.parquet as pq
import pytest
from tests.cli.agent.agents import AgentProcess
from tests.support.certificates import make_certificate, token_file
from tests.support.gscope_command import run, wait_for
from tests.support.requirements import CAPTURES, needs, needs_captures

from gscope.capture.log.log import read_log
from gscope.queries.plan.program_file import read_program
from gscope.queries.run_folder.layout import LOG_FOLDER, PROGRAM_FILE
from gscope.queries.streams.messages import Batch, EndOfStream

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
FROM flows GROUP BY tb, protocol;
DEFINE { query_name top; } SELECT tb, srcIP, destIP, protocol, count(*) AS packets
FROM IP GROUP BY time/10 AS tb, srcIP, destIP, protocol ORDER BY packets DESC LIMIT 4;
DEFINE { query_name by_bytes; } SELECT srcIP, destIP, count(*) AS packets
FROM IP GROUP BY time/60 AS minute, srcIP, destIP ORDER BY count(*) > 2, sum(len)/100 DESC LIMIT 5;
DEFINE { query_name windows; } SELECT window_end, srcIP, destIP, count(*) AS packets
FROM IP [RANGE 30 SLIDE 10] GROUP BY srcIP, destIP ORDER BY packets, srcIP DESC LIMIT 3;
DEFINE { query_name since; } SELECT tb, srcIP, destIP, running_count(*) AS packets
FROM IP GROUP BY time/10 AS tb, srcIP, destIP HAVING count(*) > 0
CLOSING_WHEN count(*) = 0 ORDER BY packets DESC LIMIT 2;
DEFINE { query_name of_top; } SELECT tb, count(*) AS pairs, sum(packets) AS packets
FROM top GROUP BY tb;
DEFINE { query_name sorted; } SELECT tb, srcIP, destIP, count(*) AS packets
FROM IP GROUP BY time/60 AS tb, srcIP, destIP ORDER BY packets DESC, destIP DESC;
DEFINE { query_name protocol; } SELECT tb, protocol, count(*) AS packets
FROM IP GROUP BY time/10 AS tb, protocol ORDER BY packets DESC LIMIT 1
"""  # noqa: E501
CHOSEN = {"top": 4, "by_bytes": 5, "windows": 3, "since": 2}
"""The queries whose first rows are chosen from those of hosts, each with its LIMIT."""
UNLIMITED = ("flows", "pairs", "twice", "protocols")
DELIVERED = (*UNLIMITED, *CHOSEN, "of_top", "sorted", "protocol")

Rows = list[tuple[str, ...]]


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
        self.captures = divided(folder, 2)
        self.agents = [
            AgentProcess(folder, name, *served, "--allow-capture", path)
            for name, path in zip("ab", self.captures, strict=True)
        ]

    def answered(self, name: str, *words: str) -> tuple[dict[str, Rows], str]:
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


@contextmanager
def recorded(hosts: Hosts, name: str, *words: str) -> Iterator[tuple[tuple[str, ...], list[Path]]]:
    """Record on hosts; return the LFTAs whose rows are served, and the log of each host."""
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
    logs = []
    for agent in hosts.agents:
        (log,) = (path / LOG_FOLDER for path in agent.work_dir.glob("run-*"))
        sent = {each.stream for each in read_log(log) if isinstance(each, Batch)}
        assert {each.rpartition("@")[0] for each in sent} >= set(served)
        logs.append(log)
    yield served, logs
    assert run("stop", *common[:4]).returncode == 0


def rows_of(path: Path) -> list[tuple[str, ...]]:
    with path.open(newline="") as file:
        return [tuple(row) for row in list(csv.reader(file))[1:]]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    made = Hosts(tmp_path_factory.mktemp("answering"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """The answers of one replay of the whole capture."""
    out = tmp_path_factory.mktemp("whole")
    found = run(
        *("replay", CAPTURE, "-e", QUERIES, "-o", "csv", "-w", out),
        *(word for each in DELIVERED for word in ("--deliver", each)),
    )
    assert found.returncode == 0, found.stderr
    return {each: rows_of(out / f"{each}.csv") for each in DELIVERED}


@pytest.fixture(scope="module")
def divided_by_addresses(hosts: Hosts) -> tuple[dict[str, Rows], str]:
    return hosts.answered("by-addresses", "--partition-set", "srcIP, destIP")


def test_hosts_answer_as_one(
    divided_by_addresses: tuple[dict[str, Rows], str], whole: dict[str, Rows]
) -> None:
    found, reported = divided_by_addresses
    for each in UNLIMITED:
        assert found[each] == whole[each], each
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


def test_the_first_rows_are_those_of_one_replay(
    divided_by_addresses: tuple[dict[str, Rows], str], whole: dict[str, Rows]
) -> None:
    found, reported = divided_by_addresses
    for each in (*CHOSEN, "of_top", "sorted", "protocol"):
        assert found[each] == whole[each], each
    for each in CHOSEN:
        assert f"hosts send the first rows of {each}, the first of all are chosen here" in reported
    assert "of_top is evaluated here: the first rows of top are chosen by the run" in reported
    assert "protocol is evaluated here: it needs packets of several hosts" in reported
    assert "sorted is evaluated here" not in reported
    assert found["top"] == [
        (str(tb), shown(source), shown(target), str(protocol), str(packets))
        for tb, source, target, protocol, packets in first_rows(CAPTURE, CHOSEN["top"])
    ]


def test_a_host_sends_its_own_first_rows_of_each_epoch(hosts: Hosts) -> None:
    delivered = [word for each in CHOSEN for word in ("--deliver", each)]
    epochs = {"top": "tb", "by_bytes": "$order", "windows": "window_end", "since": "tb"}
    with recorded(hosts, "few", *delivered, "--partition-set", "srcIP, destIP") as (served, logs):
        assert served == tuple(f"{each}.answers" for each in CHOSEN)
        for log, path in zip(logs, hosts.captures, strict=True):
            rows = wait_for(partial(sent_rows, log), "the end of all answers")
            for query, limit in CHOSEN.items():
                of_epoch = Counter(row[epochs[query]] for row in rows[f"{query}.answers"])
                assert max(of_epoch.values()) == limit, query
            own = [
                (row["tb"], row["srcIP"], row["destIP"], row["protocol"], row["packets"])
                for row in rows["top.answers"]
            ]
            assert sorted(own) == sorted(first_rows(path, CHOSEN["top"]))


def sent_rows(log: Path) -> dict[str, list[dict[str, Any]]] | None:
    """Return the rows of each stream of answers in a log; None until all of these have ended."""
    messages = [each for each in read_log(log) if ".answers@" in each.stream]
    ended = {each.stream for each in messages if isinstance(each, EndOfStream)}
    if not messages or ended != {each.stream for each in messages}:
        return None
    rows: dict[str, list[dict[str, Any]]] = {}
    for each in messages:
        own = rows.setdefault(each.stream.rpartition("@")[0], [])
        if isinstance(each, Batch):
            own += pq.read_table(log / each.path).to_pylist()
    return rows


def first_rows(path: Path, limit: int) -> list[tuple[int, bytes, bytes, int, int]]:
    """Return the first rows of ``top``, by a plain loop; ties are in the order of the columns."""
    counts: Counter[tuple[int, bytes, bytes, int]] = Counter()
    with path.open("rb") as file:
        for time_s, frame in dpkt.pcap.Reader(file):
            packet = dpkt.ethernet.Ethernet(frame).data
            if isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6):
                addresses = (mapped(packet.src), mapped(packet.dst))
                counts[int(time_s) // 10, *addresses, packet.p] += 1
    found = []
    for tb in sorted({key[0] for key in counts}):
        own = [(*key, packets) for key, packets in counts.items() if key[0] == tb]
        found += sorted(own, key=lambda row: (-row[4], *row[1:4]))[:limit]
    return found


def mapped(address: bytes) -> bytes:
    return address if len(address) == 16 else bytes(10) + b"\xff\xff" + address


def shown(address: bytes) -> str:
    found = ipaddress.IPv6Address(address)
    return str(found.ipv4_mapped or found)


def test_hosts_that_answer_everything_send_answers_alone(hosts: Hosts) -> None:
    delivered = ("--deliver", "pairs", "--deliver", "twice")
    with recorded(hosts, "all", *delivered, "--partition-set", "srcIP, destIP") as (served, _):
        assert served == ("pairs.answers", "twice.answers")
    with recorded(hosts, "none", *delivered) as (served, _):
        assert served == ("flows",)


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
