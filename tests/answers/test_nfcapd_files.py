"""Files that nfcapd, nfpcapd and nfdump write: against nfdump, and against the exports in them."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
from collections import Counter
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pytest
from tests.answers.test_flow_records import collected, exported
from tests.capture.sources.files.capture_bytes import NANO, pcap_header, pcap_record
from tests.capture.sources.flows.collector import Collector
from tests.capture.sources.flows.exports import (
    EXPORTED_S,
    RAW,
    UPTIME_MS,
    ipfix,
    set_of,
    template,
    udp_packet,
    v5,
    v5_record,
    v9,
)
from tests.capture.sources.nfcapd.read import read
from tests.golden.driver import COMPILED, INTERPRETED, answer
from tests.support.requirements import needs

from gscope.capture.sources.synthetic.source import TrafficProfile, write_pcap
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.capture.sources.nfcapd.slow_reader import Record
    from tests.golden.driver import Variation

COLLECTOR = "127.0.0.1"
MS = 10**6
FLAGS = "CEUAPRSF"
FIELDS_9 = [
    *((8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (5, 1), (6, 1), (2, 4), (1, 4), (10, 2), (14, 2)),
    *((15, 4), (16, 4), (17, 4), (9, 1), (13, 1), (58, 2), (61, 1), (22, 4), (21, 4)),
]
FIELDS_10 = [
    *(
        (27, 16),
        (28, 16),
        (7, 2),
        (11, 2),
        (4, 1),
        (5, 1),
        (6, 1),
        (2, 8),
        (1, 8),
        (10, 4),
        (14, 4),
    ),
    *((62, 16), (16, 4), (17, 4), (29, 1), (30, 1), (58, 2), (61, 1), (152, 8), (153, 8)),
]


def rich_exports(seed: int = 1) -> list[bytes]:
    """Datagrams of three versions that have a value for all that nfdump keeps."""
    chance = random.Random(seed)

    def tail(hop: bytes) -> bytes:
        numbers = (chance.randrange(1 << 32), chance.randrange(1 << 32))
        masks = (chance.randrange(129), chance.randrange(129))
        rest = (*numbers, *masks, chance.randrange(4096), chance.randrange(2))
        return hop + struct.pack(">IIBBHB", *rest)

    def head(pack: str) -> bytes:
        protocol = chance.choice((1, 6, 17, 47, 132))
        ports = (chance.randrange(1 << 16), chance.randrange(1 << 16))
        counts = (chance.randrange(1 << 31), chance.randrange(1 << 31))
        links = (chance.randrange(1 << 15), chance.randrange(1 << 15))
        rest = (protocol, chance.randrange(256), chance.randrange(256), *counts, *links)
        return struct.pack(">HHBBB" + pack, *ports, *rest)

    v4 = [
        chance.randbytes(8)
        + head("IIHH")
        + tail(chance.randbytes(4))
        + struct.pack(">II", UPTIME_MS - chance.randrange(9999), UPTIME_MS - chance.randrange(9))
        for _ in range(20)
    ]
    v6 = [
        chance.randbytes(32)
        + head("QQII")
        + tail(chance.randbytes(16))
        + struct.pack(">QQ", *(EXPORTED_S * 1000 + chance.randrange(-9999, 9999) for _ in "ab"))
        for _ in range(20)
    ]
    return [
        v9([set_of(0, template(300, FIELDS_9)), set_of(300, b"".join(v4[:10]))], domain=7),
        v9([set_of(300, b"".join(v4[10:]))], 1, domain=7),
        ipfix([set_of(2, template(300, FIELDS_10)), set_of(300, b"".join(v6))], domain=1 << 31),
        v5([v5_record(f"10.0.0.{n}", ports=(n, 2 * n)) for n in range(9)], engine=0x0102),
        v5([v5_record(f"10.0.1.{n}", counts=(n, 99 * n)) for n in range(9)], interval=50),
    ]


COLUMNS = (
    *("ts", "te", "tr", "sa", "da", "sp", "dp", "pr", "flg", "tos", "pkt", "byt", "in", "out"),
    *("sas", "das", "smk", "dmk", "dir", "nh", "svln", "ra"),
)
"""What nfdump shows of a record; its formats for programs differ between versions."""


def of_nfdump(file: Path) -> list[dict[str, str]]:
    """The records of a file by nfdump, times in UTC."""
    shape = "fmt:" + ",".join(f"%{name}" for name in COLUMNS)
    shown = _nfdump("-r", str(file), "-q", "-N", "-6", "-o", shape)
    lines = ([part.strip() for part in line.split(",")] for line in shown.splitlines() if line)
    return [dict(zip(COLUMNS, parts, strict=True)) for parts in lines]


def _nfdump(*arguments: str) -> str:
    shown = subprocess.run(
        ["nfdump", *arguments],
        check=True,
        capture_output=True,
        timeout=60,
        env={"TZ": "UTC", "PATH": os.environ["PATH"]},
    )
    return shown.stdout.decode()


def _as_nfdump(time_ns: int, record: Record | str) -> dict[str, str]:
    """A record as ``of_nfdump`` shows it, without what it lacks."""
    assert isinstance(record, dict)
    names = {
        "srcIP": "sa",
        "destIP": "da",
        "protocol": "pr",
        "tos": "tos",
        "next_hop": "nh",
        "input_interface": "in",
        "output_interface": "out",
        "srcAS": "sas",
        "destAS": "das",
        "src_mask": "smk",
        "dest_mask": "dmk",
        "vlan": "svln",
        "exporter": "ra",
    }
    shown = {names[name]: str(value) for name, value in record.items() if name in names}
    shown |= {name: _shown(record[key]) for name, key in (("ts", "first"), ("te", "last"))}
    interval = record["sampling_interval"]
    shown |= {"pkt": str(record["packets"] * interval), "byt": str(record["bytes"] * interval)}
    if record["protocol"] in (6, 17, 132):
        shown |= {"sp": str(record["srcPort"]), "dp": str(record["destPort"])}
    if record["protocol"] in (1, 58):
        shown["dp"] = f"{record['type']}.{record['code']}"
    if record["protocol"] == 6:
        bits = ((record["flags"] >> 7 - bit) & 1 for bit in range(8))
        shown["flg"] = "".join(n if bit else "." for n, bit in zip(FLAGS, bits, strict=True))
    if "direction" in record:
        shown["dir"] = "IE"[record["direction"]]
    return shown | {"tr": _shown(time_ns)}


def _shown(time_ns: int) -> str:
    assert time_ns % MS == 0
    seconds, rest_ns = divmod(time_ns, 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest_ns // MS:03d}"


def ensure_equal(file: Path, least: int) -> None:
    found, source = read(file)
    theirs = of_nfdump(file)
    assert len(found) == len(theirs) >= least
    assert source.stats.received_packets == len(found)
    for (time_ns, record), row in zip(found, theirs, strict=True):
        ours = _as_nfdump(time_ns, record)
        assert len(ours) >= 10
        assert {name: _same(row[name]) for name in ours} == {n: _same(v) for n, v in ours.items()}


def _same(shown: str) -> str:
    return str(ip_address(shown)) if ":" in shown and " " not in shown else shown


@needs("nfcapd", "nfdump")
def test_all_fields_are_those_that_nfdump_shows(tmp_path: Path) -> None:
    file = collected(rich_exports(), tmp_path / "a")
    ensure_equal(file, 58)
    for compression in "123":
        packed = tmp_path / f"nfcapd.{compression}"
        shutil.copy(file, packed)
        _nfdump("-J", compression, "-r", str(packed))
        assert packed.read_bytes()[16] == int(compression)
        ensure_equal(packed, 58)
        assert read(packed)[0] == read(file)[0]


@needs("nfcapd", "nfdump")
def test_files_that_nfdump_writes(tmp_path: Path) -> None:
    file = collected(rich_exports(2), tmp_path / "a")
    sorted_file, filtered = tmp_path / "sorted", tmp_path / "filtered"
    _nfdump("-r", str(file), "-O", "bytes", "-y", "-w", str(sorted_file))
    _nfdump("-r", str(file), "-z", "-w", str(filtered), "proto tcp")
    ensure_equal(sorted_file, 58)
    ensure_equal(filtered, 10)


@needs("nfpcapd", "nfdump")
def test_files_of_nfpcapd(tmp_path: Path) -> None:
    capture = tmp_path / "traffic.pcap"
    write_pcap(TrafficProfile(seed=8, packets_per_second=500), capture, 3000)
    folder = tmp_path / "a"
    folder.mkdir()
    command = ["nfpcapd", "-r", str(capture), "-w", str(folder), "-y"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    (file,) = folder.iterdir()
    ensure_equal(file, 400)
    assert all("exporter" not in record for _, record in read(file)[0])


def capture_at(datagrams: Sequence[bytes], times_ns: Sequence[int]) -> bytes:
    packets = (udp_packet(each, COLLECTOR) for each in datagrams)
    records = (pcap_record(p, *divmod(at, 10**9)) for p, at in zip(packets, times_ns, strict=True))
    return pcap_header(magic=NANO, linktype=RAW) + b"".join(records)


def arrivals(file: Path, datagrams: Sequence[bytes]) -> list[int]:
    """When nfcapd received each datagram, by nfdump; its records have one time."""
    received = iter([row["tr"] for row in of_nfdump(file)])
    collector, times = Collector(), []
    for datagram in datagrams:
        records = collector.take(datagram, COLLECTOR)
        (shown,) = {next(received) for _ in records} or {""}
        if shown:
            at = datetime.strptime(shown, "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=UTC)
            latest_ns = int(at.timestamp()) * 10**9 + at.microsecond * 1000
        times.append(latest_ns)
    assert next(received, None) is None
    return times


def same_records(folder: Path, datagrams: Sequence[bytes], lost: set[str]) -> None:
    """Compare the records of datagrams with those of the file, which lacks the fields ``lost``.

    nfcapd does not store when records were exported, nor parts of a v5 record that are zero.
    """
    folder.mkdir(exist_ok=True)
    file = collected(list(datagrams), folder / "collected")
    capture = folder / "exports.pcap"
    capture.write_bytes(capture_at(datagrams, arrivals(file, datagrams)))
    stored, direct = read(file)[0], read(capture)[0]
    assert len(stored) == len(direct)
    for (stored_ns, of_file), (time_ns, record) in zip(stored, direct, strict=True):
        assert isinstance(record, dict)
        assert isinstance(of_file, dict)
        assert stored_ns == time_ns
        kept = [
            name
            for name, value in record.items()
            if name not in {"exported", *lost} and (name in of_file or int(value))
        ]
        assert {name: of_file.get(name) for name in kept} == {
            name: record[name] // MS * MS if name in ("first", "last") else record[name]
            for name in kept
        }


@needs("nfcapd", "nfdump", "softflowd")
@pytest.mark.parametrize(
    # Times from an uptime that has begun again are 2^32 ms off in nfdump.
    ("version", "lost"),
    [(5, set()), (9, {"first", "last"}), (10, {"first", "last"})],
)
def test_records_are_those_of_the_exports(version: int, lost: set[str], tmp_path: Path) -> None:
    capture = tmp_path / "traffic.pcap"
    write_pcap(TrafficProfile(seed=version, packets_per_second=500), capture, 3000)
    same_records(tmp_path, exported(capture, version), lost)


@needs("nfcapd", "nfdump")
def test_records_with_all_fields_are_those_of_the_exports(tmp_path: Path) -> None:
    # nfcapd 1.7.1 takes ICMP from its own element only, and no masks of v5.
    same_records(tmp_path / "a", rich_exports(3)[:3], {"type", "code"})
    same_records(tmp_path / "b", rich_exports(3)[3:], {"src_mask", "dest_mask"})


BY_SOURCE = """
SELECT srcIP, protocol, count(*) AS flows, sum(packets) AS p, sum(bytes) AS b,
    sum(scaled_bytes) AS scaled, max(destPort) AS port, max(srcAS) AS asn
FROM FLOW WHERE protocol <> 'icmp'
GROUP BY time, srcIP, protocol
"""


@pytest.mark.spark
@needs("nfcapd", "nfdump")
@pytest.mark.parametrize("variation", [COMPILED, INTERPRETED], ids=lambda v: v.name)
def test_rows_are_those_of_the_exports(
    variation: Variation, tmp_path: Path, spark: SparkSession
) -> None:
    datagrams = rich_exports(4)
    file = collected(datagrams, tmp_path / "collected")
    capture = tmp_path / "exports.pcap"
    capture.write_bytes(capture_at(datagrams, arrivals(file, datagrams)))
    program = compile_queries([QueryText(BY_SOURCE, "q")], CompileContext(("a",), {}, {})).program
    both: list[Counter[Any]] = []
    for path in (file, capture):
        (rows,) = answer(program, {"a": [path]}, variation, spark).values()
        both.append(Counter(rows))
    assert both[0] == both[1]
    assert both[0].total() > 40
