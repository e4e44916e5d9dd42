"""The figures of ``gscope explain --run`` for a replay.

They are held against plain loops over the same packets.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dpkt
import pytest
from tests.support.gscope_command import run
from tests.support.requirements import CAPTURES, needs_captures

if TYPE_CHECKING:
    from pathlib import Path

CAPTURE = CAPTURES / "ndpi-pcap-1kxun.pcap"
SLOTS = 4
QUERIES = """
QUERY flows:
SELECT tb, srcIP, destIP, srcPort, destPort, count(*) AS packets FROM TCP
WHERE ipversion = 4 AND len > 60
GROUP BY time/20 AS tb, srcIP, destIP, srcPort, destPort;

QUERY whole:
SELECT tb, srcIP, destIP, srcPort, destPort, count(*) AS packets FROM TCP
WHERE ipversion = 4 AND len > 60
GROUP BY time/1000000000 AS tb, srcIP, destIP, srcPort, destPort;

QUERY talkers:
SELECT tb, srcIP, sum(packets) AS packets FROM flows WHERE packets > 3 GROUP BY tb, srcIP;

QUERY shares:
SELECT f.tb, f.srcPort, f.packets, t.packets AS total FROM flows f, talkers t
WHERE f.tb = t.tb AND f.srcIP = t.srcIP;

QUERY pairs:
SELECT a.tb, a.srcPort, b.packets FROM flows a, flows b
WHERE a.tb = b.tb AND a.srcIP = b.destIP AND a.destIP = b.srcIP
AND a.srcPort = b.destPort AND a.destPort = b.srcPort
AND if_else(a.srcIP < a.destIP, 'up', 'down') = 'up';

QUERY ages:
SELECT tb, srcIP, running_count(*) AS packets FROM TCP WHERE ipversion = 4 AND len > 60
GROUP BY time/20 AS tb, srcIP CLOSING_WHEN count(*) = 0;

QUERY requests:
SELECT timestamp, srcPort FROM TCP WHERE ipversion = 4 AND destPort = 80;

QUERY responses:
SELECT timestamp, srcPort FROM TCP WHERE ipversion = 4 AND srcPort = 80;

QUERY web:
MERGE requests.timestamp : responses.timestamp FROM requests, responses;

QUERY names:
SELECT time, srcPort FROM UDP WHERE destPort = 53
"""

pytestmark = [pytest.mark.spark, pytest.mark.slow, needs_captures]


@dataclass
class Replayed:
    """A replay that has ended: its folder, its summary, and the figures of its nodes."""

    folder: Path
    summary: str
    figures: dict[str, Any]

    def node(self, name: str) -> dict[str, Any]:
        (found,) = (node for node in self.figures["nodes"] if node["name"] == name)
        return dict(found)


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    folder = tmp_path_factory.mktemp("replayed")
    (folder / "web.gsql").write_text(QUERIES)
    words = ("replay", CAPTURE, "-q", "web.gsql", "--run", "web", "--table-slots", str(SLOTS))
    done = run(*words, "-w", "answers", "--work-dir", "work", cwd=folder)
    assert done.returncode == 0, done.stderr
    shown = run("explain", "--run", "web", "--work-dir", "work", "--json", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    return Replayed(folder, done.stderr, json.loads(shown.stdout))


@dataclass
class Expected:
    """What plain loops find: packets, and the rows of each query, by name."""

    packets: int
    taken: Counter[str]
    given: Counter[str]


@pytest.fixture(scope="module")
def expected() -> Expected:
    packets, taken = 0, Counter[str]()
    groups: Counter[tuple[Any, ...]] = Counter()
    with CAPTURE.open("rb") as file:
        for at, frame in dpkt.pcap.Reader(file):
            packets += 1
            ip = dpkt.ethernet.Ethernet(frame).data
            if isinstance(ip, dpkt.ip.IP) and isinstance(ip.data, dpkt.tcp.TCP):
                tcp = ip.data
                taken["web.1"] += tcp.dport == 80
                taken["web.2"] += tcp.sport == 80
                if len(frame) > 60:
                    taken["flows"] += 1
                    taken["whole"] += 1
                    groups[int(at) // 20, ip.src, ip.dst, tcp.sport, tcp.dport] += 1
            elif isinstance(ip, dpkt.ip.IP | dpkt.ip6.IP6) and isinstance(ip.data, dpkt.udp.UDP):
                taken["names"] += ip.data.dport == 53
    flows = {(at, (src, sport), (dst, dport)) for at, src, dst, sport, dport in groups}
    large = {key: count for key, count in groups.items() if count > 3}
    talkers = {key[:2] for key in large}
    given = Counter(
        flows=len(groups),
        talkers=len(talkers),
        shares=sum(key[:2] in talkers for key in groups),
        whole=len({key[1:] for key in groups}),
        pairs=sum((at, *reversed(key)) in flows and key[0] < key[1] for at, *key in flows),
        web=taken["web.1"] + taken["web.2"],
        names=taken["names"],
    )
    return Expected(packets, taken, given)


def test_lftas_take_what_their_predicates_let_pass(replayed: Replayed, expected: Expected) -> None:
    (interface,) = replayed.figures["interfaces"]
    assert interface["packets"] == expected.packets
    assert interface["ns_per_packet"] > 0
    for query in ("flows", "whole", "web.1", "web.2", "names"):
        lfta = replayed.node(f"LFTA {query}")
        assert lfta["tuples_in"] == expected.taken[query] > 0
        (stream,) = lfta["streams"]
        assert (stream["tuples_in"], stream["tuples_out"]) == (
            lfta["tuples_in"],
            lfta["tuples_out"],
        )
        if lfta["kind"] == "selection":
            assert (lfta["tuples_out"], lfta["selectivity"]) == (lfta["tuples_in"], 1)
            assert (lfta["evicted_groups"], lfta["state_capacity"]) == (0, None)


def test_a_full_table_evicts_all_groups_but_those_of_its_slots(
    replayed: Replayed, expected: Expected
) -> None:
    lfta = replayed.node("LFTA whole")
    # The only epoch leaves a full table when it closes.
    assert lfta["evicted_groups"] == lfta["tuples_out"] - SLOTS
    assert lfta["tuples_out"] > expected.given["whole"] > SLOTS
    assert lfta["evicted_share"] == pytest.approx(lfta["evicted_groups"] / lfta["tuples_out"])
    assert (lfta["state_tuples"], lfta["state_capacity"]) == (0, SLOTS)


def test_operators_read_and_give_their_rows(replayed: Replayed, expected: Expected) -> None:
    given = expected.given
    read = {
        "flows": replayed.node("LFTA flows")["tuples_out"],
        "whole": replayed.node("LFTA whole")["tuples_out"],
        "talkers": given["flows"],
        "shares": given["flows"] + given["talkers"],
        "pairs": 2 * given["flows"],
        "web": given["web"],
    }
    for query, rows in read.items():
        node = replayed.node(query)
        assert (node["tuples_in"], node["tuples_read"]) == (rows, rows), query
        assert node["tuples_out"] == given[query] > 0, query
        assert node["selectivity"] == pytest.approx(given[query] / rows, abs=1e-6)
        assert node["has_ended"]
        assert (node["waiting_tuples"], node["state_tuples"], node["late_tuples"]) == (0, 0, 0)
        assert node["is_sql"] or node["cpu_ns"] > 0


def test_a_running_aggregation_reads_what_its_lfta_gives(replayed: Replayed) -> None:
    lfta, node = replayed.node("LFTA ages"), replayed.node("ages")
    assert lfta["tuples_in"] == replayed.node("LFTA flows")["tuples_in"]
    assert node["tuples_in"] == node["tuples_read"] == lfta["tuples_out"] > 0
    assert node["cpu_ns"] > 0


def test_rows_of_spark_sql_are_counted_where_they_are_delivered(replayed: Replayed) -> None:
    node = replayed.node("pairs")
    assert node["is_sql"]
    assert node["cpu_ns_per_tuple"] is None
    assert node["tuples_out"] > 0


def test_figures_are_those_of_the_summary_and_of_the_files(
    replayed: Replayed, expected: Expected
) -> None:
    assert f"{expected.packets:,} packets received" in replayed.summary
    for result in replayed.figures["results"]:
        rows = replayed.node(result["node"])["tuples_out"]
        assert f"{result['name']} {rows:,} rows" in replayed.summary
        with (replayed.folder / "answers" / f"{result['name']}.csv").open() as file:
            assert sum(1 for _ in csv.reader(file)) == rows + 1
    assert {result["name"] for result in replayed.figures["results"]} == {
        "pairs",
        "ages",
        "whole",
        "shares",
        "web",
        "names",
    }


def test_statistics_are_those_of_the_run_that_ended(replayed: Replayed, expected: Expected) -> None:
    words = ("explain", "web.gsql", "--hosts", "2", "--partition-set", "srcIP")
    done = run(
        *words, *("--statistics", "web", "--work-dir", "work", "--json"), cwd=replayed.folder
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["partitioning"]
    assert found["is_measured"]
    received = {each["query"]: each["received"] for each in found["operators"]}
    # Bytes for each packet, of rows of two or four numbers of eight bytes.
    for query, size in (("shares", 32), ("web", 16), ("names", 16)):
        assert received[query] == pytest.approx(
            size * expected.given[query] / expected.packets, abs=1e-3
        )
