"""The C twin gives the flows tshark gives; a yardstick that cheats would be none."""

from __future__ import annotations

import csv
import ipaddress
import struct
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from benchmarks.lfta_stage import compile_twin
from tests.support.requirements import CAPTURES, EXPECTED, needs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SAMPLE = [
    "ndpi-reddit.pcap",
    "ndpi-ip_fragmented_garbage.pcap",
    "ndpi-netflix.pcap",
    "ndpi-synscan.pcap",
    "zeek-ipv6-fragmented-dns.pcap",
    "zeek-ssh.pcap",
]
COLUMNS = ("<i8", "<i4", "<i4", "V16", "V16", "<i4", "<i4", "<i8", "<i8")

pytestmark = needs("gcc")


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_twin(tmp_path_factory.mktemp("twin"))


def _rows(path: Path) -> Iterator[tuple[object, ...]]:
    data = path.read_bytes()
    place = 0
    while place < len(data):
        (count,) = struct.unpack_from("<q", data, place)
        place += 8
        columns = []
        for kind in COLUMNS:
            column = np.frombuffer(data, kind, count, place)
            place += column.nbytes
            columns.append(column.tolist())
        yield from zip(*columns, strict=True)


def _flows(path: Path) -> Counter[tuple[object, ...]]:
    """Rows of the twin's output with (cnt, bytes) added up, addresses as text."""
    flows: Counter[tuple[object, ...]] = Counter()
    for tb, version, protocol, source, destination, *ports, count, size in _rows(path):
        assert isinstance(source, bytes)
        assert isinstance(destination, bytes)
        addresses = [
            str(ipaddress.ip_address(value[12:] if version == 4 else value))
            for value in (source, destination)
        ]
        key = (tb, version, protocol, *addresses, *ports)
        flows[*key, "cnt"] += int(str(count))
        flows[*key, "bytes"] += int(str(size))
    return flows


def _expected(name: str) -> Counter[tuple[object, ...]]:
    flows: Counter[tuple[object, ...]] = Counter()
    with (EXPECTED / f"{name}.flows.csv").open() as file:
        for row in csv.DictReader(file):
            key = (
                int(row["tb"]),
                int(row["ipversion"]),
                int(row["protocol"]),
                str(ipaddress.ip_address(row["srcIP"])),
                str(ipaddress.ip_address(row["destIP"])),
                int(row["srcPort"]),
                int(row["destPort"]),
            )
            flows[*key, "cnt"] += int(row["cnt"])
            flows[*key, "bytes"] += int(row["bytes"])
    return flows


@pytest.mark.parametrize("bits", ["2", "16"])
@pytest.mark.parametrize("name", SAMPLE)
def test_flows_are_tshark_s(twin: Path, tmp_path: Path, name: str, bits: str) -> None:
    output = tmp_path / "rows"
    capture = CAPTURES / name
    subprocess.run([twin, capture, output, bits], check=True, stdout=subprocess.DEVNULL)
    assert _flows(output) == _expected(name)


@pytest.mark.parametrize("content", [b"", b"short", b"\0" * 24])
def test_what_is_no_capture_is_refused(twin: Path, tmp_path: Path, content: bytes) -> None:
    capture = tmp_path / "capture"
    capture.write_bytes(content)
    done = subprocess.run([twin, capture, tmp_path / "rows"], check=False, capture_output=True)
    assert done.returncode == 1
    assert done.stderr.startswith(b"lfta_twin: ")
