"""The board answers what plain loops over the same packets count."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from scapy.layers.inet import IP, UDP
from tests.golden.driver import INTERPRETED, answer
from tests.library import traffic
from tests.library.things import start
from tests.library.traffic import ANN, BASE, BOB, WEB, frame, write

from gscope.cli.config.effective import GivenSetting, load_config
from gscope.cli.session.board import BOARD, with_board
from gscope.cli.session.request import QueryRequest
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.golden.driver import Row
    from tests.library.traffic import Sent

LOOKUPS = ((2, "www.example.org"), (3, "www.example.org"), (14, "other.example"))
HELLOS = ((5, "shop.example"), (6, "shop.example"), (27, "mail.example"))


def packets() -> list[Sent]:
    sent: list[Sent] = []
    for number in range(30):
        source, target = ((ANN, WEB), (BOB, WEB), (ANN, BOB))[number % 3]
        udp = UDP(sport=4000 + number % 2, dport=1053 + number % 4 * 1000)
        sent.append((1 + number * 1.5, frame(IP(src=source, dst=target) / udp / bytes(number))))
    for at, name in LOOKUPS:
        sent += traffic.lookup(at, name)
    for at, name in HELLOS:
        hello = traffic.tls_hello(name.encode())
        sent.append((at, traffic.tcp(ANN, 40000, WEB, 443, "PA", hello)))
    return sent


def ten(at: float) -> str:
    return str((BASE + int(at)) // 10 * 10)


def counted(rows: dict[tuple[str, ...], list[Any]]) -> set[tuple[str, ...]]:
    """Return keys with the number of packets and their bytes."""
    return {(*key, str(len(sizes)), str(sum(sizes))) for key, sizes in rows.items()}


def distinct(rows: list[Row]) -> set[Row]:
    assert len(set(rows)) == len(rows)
    return set(rows)


@pytest.mark.spark
def test_the_board_counts_what_loops_count(tmp_path: Path, spark: SparkSession) -> None:
    sent = packets()
    texts = [QueryText(text, "board") for text in BOARD]
    program = compile_queries(texts, CompileContext(("trace",))).program
    files = {"trace": [write(tmp_path / "trace.pcap", sent)]}
    found = answer(program, files, INTERPRETED, spark)
    talkers: dict[tuple[str, ...], list[int]] = defaultdict(list)
    ports: dict[tuple[str, ...], list[int]] = defaultdict(list)
    links: dict[tuple[str, ...], list[int]] = defaultdict(list)
    receivers: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for at, packet in sent:
        ip, size = packet[IP], len(packet)
        ends = ip.payload
        talkers[ten(at), ip.src].append(size)
        receivers[ten(at), ip.src].add(ip.dst)
        ports[ten(at), str(ip.proto), str(min(ends.sport, ends.dport))].append(size)
        links[start(1, int(at)), "trace"].append(size)
    assert distinct(found["talkers"]) == {
        (*row, str(len(receivers[row[:2]]))) for row in counted(talkers)
    }
    assert distinct(found["ports"]) == counted(ports)
    bits = [(*row[:3], str(int(row[3]) // 8)) for row in found["links"]]
    assert distinct(bits) == counted(links)
    for query, each in (("names", LOOKUPS), ("sites", HELLOS)):
        expected = Counter((ten(at), name) for at, name in each)
        assert distinct(found[query]) == {(*key, str(n), "1") for key, n in expected.items()}


def config_of(kind: str) -> Any:
    return load_config({"output.format": GivenSetting(kind, "-o")}, None)


def test_only_a_view_without_queries_shows_the_board() -> None:
    nothing = QueryRequest()
    assert with_board(nothing, config_of("view")).expressions == BOARD
    assert with_board(nothing, config_of("table")) is nothing
    for request in (QueryRequest(("top_talkers",)), QueryRequest((), ("SELECT time FROM IP",))):
        assert with_board(request, config_of("view")) is request
