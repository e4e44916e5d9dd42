"""Arithmetic beyond 64 bits over a capture, against a plain loop over its packets."""

from __future__ import annotations

import csv
import io
import socket
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import dpkt
import pytest
from tests.support.gscope_command import run
from tests.support.requirements import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

CAPTURE = CAPTURES / "ndpi-netflix.pcap"
HASHED = "(sequence_number * 2654435761) % 100 < 10"
QUERIES = f"""
DEFINE {{ query_name 'low'; }}
SELECT tb, count(*) AS packets FROM TCP WHERE {HASHED} GROUP BY time/60 AS tb;
DEFINE {{ query_name 'packets'; visibility 'internal'; }}
SELECT time, srcIP, sequence_number, time_ns FROM TCP;
DEFINE {{ query_name 'high'; }}
SELECT tb, count(*) AS packets FROM packets WHERE {HASHED} GROUP BY time/60 AS tb;
DEFINE {{ query_name 'low_means'; }}
SELECT tb, srcIP, avg(time_ns) AS mean, avg(sequence_number * 4294967296) AS wrapped
FROM TCP GROUP BY time/60 AS tb, srcIP;
DEFINE {{ query_name 'high_means'; }}
SELECT tb, srcIP, avg(time_ns) AS mean, avg(sequence_number * 4294967296) AS wrapped
FROM packets GROUP BY time/60 AS tb, srcIP
"""


def wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def mean(values: list[int]) -> float:
    """One division of two doubles: of the exact sum and of the count."""
    return float(sum(values)) / float(len(values))


def tcp_packets() -> list[tuple[int, str, int]]:
    """Time, source and sequence number of each TCP packet."""
    with CAPTURE.open("rb") as file:
        packets = []
        for time, data in dpkt.pcap.Reader(file):
            ip = dpkt.ethernet.Ethernet(data).data
            if isinstance(ip, dpkt.ip.IP) and isinstance(ip.data, dpkt.tcp.TCP):
                time_ns = round(time * 10**6) * 1000
                packets.append((time_ns, socket.inet_ntoa(ip.src), ip.data.seq))
    return packets


def answers(tmp_path: Path) -> dict[str, list[list[str]]]:
    text = tmp_path / "q.gsql"
    text.write_text(QUERIES)
    out = tmp_path / "out"
    done = run("replay", str(CAPTURE), "-q", str(text), "-o", "csv", "-w", str(out))
    assert done.returncode == 0, done.stderr
    return {
        name: list(csv.reader(io.StringIO((out / f"{name}.csv").read_text())))[1:]
        for name in ("low", "high", "low_means", "high_means")
    }


def test_products_and_averages_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    chosen: Counter[str] = Counter()
    times: dict[tuple[str, str], list[int]] = defaultdict(list)
    products: dict[tuple[str, str], list[int]] = defaultdict(list)
    for time_ns, source, sequence in tcp_packets():
        minute = str(time_ns // 60_000_000_000)
        product = wrapped(sequence * 2654435761)
        # the remainder has the sign of the dividend
        chosen[minute] += (abs(product) % 100) * (-1 if product < 0 else 1) < 10
        times[minute, source].append(time_ns)
        products[minute, source].append(wrapped(sequence * 4294967296))
    assert list(chosen.values()) == [238, 226, 16]
    expected = sorted([minute, str(count)] for minute, count in chosen.items())
    found = answers(tmp_path)
    assert sorted(found["low"]) == expected
    assert sorted(found["high"]) == expected
    for name in ("low_means", "high_means"):
        means = {(row[0], row[1]): (float(row[2]), float(row[3])) for row in found[name]}
        assert means == {
            group: (mean(values), mean(products[group])) for group, values in times.items()
        }
