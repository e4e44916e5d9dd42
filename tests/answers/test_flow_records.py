"""Queries over flow records: against a slow collector and a plain loop, and against nfdump."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections import Counter, defaultdict
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpkt
import pytest
from tests.capture.sources.flows import sflow
from tests.capture.sources.flows.collector import Collector
from tests.capture.sources.flows.decoded import decoded
from tests.capture.sources.flows.exports import (
    EXPORTER,
    capture_of,
    ipfix,
    set_of,
    template,
    udp_packet,
    v5,
    v5_record,
    v9,
)
from tests.golden.driver import COMPILED, INTERPRETED, answer
from tests.support.requirements import needs

from gscope.capture.sources.synthetic.source import TrafficProfile, write_pcap
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.capture.sources.flows.collector import Record
    from tests.golden.driver import Row, Variation

BY_SOURCE = """
SELECT srcIP, protocol, count(*) AS flows, sum(packets) AS p, sum(bytes) AS b,
    sum(scaled_bytes) AS scaled, min(first) AS begin_, max(destPort) AS port, max(srcAS) AS asn
FROM FLOW WHERE (destIP <> '10.0.0.3' OR flags & 2 <> 0) AND protocol <> 'icmp'
GROUP BY srcIP, protocol
"""


def mixed() -> list[bytes]:
    """Exports of three formats, some without fields that others have."""
    fields = [(27, 16), (28, 16), (4, 1), (6, 1), (11, 2), (2, 8), (1, 8), (152, 8), (34, 4)]
    body = b"".join(
        ip_address(f"2001:db8::{n % 4}").packed
        + ip_address("2001:db8::99").packed
        + bytes((6 if n % 3 else 17, n))
        + n.to_bytes(2, "big")
        + (n + 1).to_bytes(8, "big")
        + (100 * n).to_bytes(8, "big")
        + (1_700_000_000_000 + n).to_bytes(8, "big")
        + (n % 5).to_bytes(4, "big")
        for n in range(40)
    )
    few = template(301, [(8, 4), (12, 4), (2, 2)])
    records = [
        v5_record(f"10.0.0.{n % 5}", f"10.0.0.{n % 4}", (n, 2 * n), (6, 17, 1)[n % 3], (n, 50 * n))
        for n in range(60)
    ]
    return [
        v5(records[:30], interval=10),
        v5(records[30:], 30),
        v9([set_of(0, template(300, fields)), set_of(300, body)]),
        ipfix([set_of(2, few), set_of(301, bytes((10, 0, 0, 1, 10, 0, 0, 2, 0, 9)) * 3)]),
    ]


def expected() -> list[Row]:
    """The rows of ``BY_SOURCE`` by a plain loop over what the slow collector returns."""
    collector = Collector()
    groups: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for datagram in mixed():
        for record in collector.take(datagram, EXPORTER):
            assert isinstance(record, dict)
            protocol, flags = record.get("protocol"), record.get("flags")
            is_wanted = str(record["destIP"]) != "10.0.0.3" or (flags is not None and flags & 2)
            if is_wanted and protocol is not None and protocol != 1:
                groups[record["srcIP"], protocol].append(record)
    return [
        (
            *(str(source), str(protocol), str(len(records))),
            *(str(sum(each[name] for each in records)) for name in ("packets", "bytes")),
            str(sum(each["bytes"] * each["sampling_interval"] for each in records)),
            min(each["first"] for each in records),
            str(max(each["destPort"] for each in records)),
            str(max((each["srcAS"] for each in records if "srcAS" in each), default="")),
        )
        for (source, protocol), records in groups.items()
    ]


@pytest.mark.spark
@pytest.mark.parametrize("variation", [COMPILED, INTERPRETED], ids=lambda v: v.name)
def test_groups_of_records_are_those_of_a_plain_loop(
    variation: Variation, tmp_path: Path, spark: SparkSession
) -> None:
    path = tmp_path / "exports.pcap"
    path.write_bytes(capture_of(map(udp_packet, mixed())))
    program = compile_queries([QueryText(BY_SOURCE, "q")], CompileContext(("a",), {}, {})).program
    (rows,) = answer(program, {"a": [path]}, variation, spark).values()
    found = [(*row[:6], _ns(row[6]), *row[7:]) for row in rows]
    assert sorted(found) == sorted(expected())


def _ns(shown: str) -> int:
    from datetime import UTC, datetime

    whole, fraction = shown.removesuffix("Z").split(".")
    at = datetime.strptime(whole, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    return int(at.timestamp()) * 10**9 + int(fraction)


# Other programs -----------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def exported(capture: Path, version: int) -> list[bytes]:
    """The datagrams that softflowd exports for a capture."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as collector:
        collector.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        collector.bind(("127.0.0.1", 0))
        target = f"127.0.0.1:{collector.getsockname()[1]}"
        # With a control socket it would wait for commands after the last packet.
        places = ["-p", str(capture.parent / "softflowd.pid"), "-c", "none"]
        command = ["softflowd", "-r", str(capture), "-n", target, "-v", str(version), "-d", *places]
        datagrams = []
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as it:
            while True:
                # On the loopback a datagram is delivered when its sender has sent it: nothing
                # follows once it has ended and none is there.
                has_ended = it.poll() is not None
                collector.settimeout(0 if has_ended else 0.1)
                try:
                    datagrams.append(collector.recv(65535))
                except (BlockingIOError, TimeoutError):
                    if has_ended:
                        assert it.returncode == 0
                        return datagrams


def unread_bytes(port: int) -> int | None:
    """What waits in the socket of a UDP port on this host; None if nothing is bound to it."""
    for line in Path("/proc/net/udp").read_text(encoding="ascii").splitlines()[1:]:
        local, queues = line.split()[1], line.split()[4]
        if int(local.partition(":")[2], 16) == port:
            return int(queues.partition(":")[2], 16)
    return None


def collected(datagrams: list[bytes], folder: Path, program: str = "nfcapd") -> Path:
    """The file in which nfcapd, or sfcapd, stores the records of datagrams."""
    folder.mkdir()
    port = free_port()
    # One file: nfcapd begins another at each multiple of the interval.
    places = ["-b", "127.0.0.1", "-p", str(port), "-w", str(folder), "-t", "86400"]
    command = [program, *places, "-B", "8388608"]
    with (
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as nfcapd,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        while unread_bytes(port) is None:
            assert nfcapd.poll() is None
        for number, datagram in enumerate(datagrams):
            sender.sendto(datagram, ("127.0.0.1", port))
            # It must not fall behind by more than its buffer.
            while number % 32 == 0 and (unread_bytes(port) or 0) > 100_000:
                assert nfcapd.poll() is None
        while unread_bytes(port):
            assert nfcapd.poll() is None
        end(nfcapd)
    (file,) = folder.glob("nfcapd.2*")
    return file


def end(nfcapd: subprocess.Popen[bytes]) -> None:
    """End nfcapd, which loses a signal that arrives right before it waits for a datagram."""
    for _ in range(60):
        nfcapd.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            assert nfcapd.wait(1) == 0
            return
    nfcapd.kill()
    pytest.fail("nfcapd did not end")


def of_nfdump(file: Path) -> Counter[tuple[str, ...]]:
    """Addresses, ports, protocol, packets and bytes of each record."""
    shown = subprocess.run(
        ["nfdump", "-r", str(file), "-q", "-N", "-6", "-o", "fmt:%sa,%da,%sp,%dp,%pr,%pkt,%byt"],
        check=True,
        capture_output=True,
        timeout=60,
    )
    lines = shown.stdout.decode().splitlines()
    return Counter(tuple(part.strip() for part in line.split(",")) for line in lines if line)


@needs("softflowd", "nfcapd", "nfdump")
@pytest.mark.parametrize("version", [5, 9, 10])
def test_records_of_softflowd_are_those_that_nfdump_stores(version: int, tmp_path: Path) -> None:
    capture = tmp_path / "traffic.pcap"
    write_pcap(TrafficProfile(seed=version, packets_per_second=500), capture, 3000)
    datagrams = exported(capture, version)
    found, source = decoded(tmp_path, datagrams)
    assert source.stats.dropped_packets == 0
    of_gscope = Counter(map(_as_nfdump, found))
    assert of_gscope == of_nfdump(collected(datagrams, tmp_path / "nfcapd"))
    assert of_gscope.total() > 400


@needs("sfcapd", "nfdump")
def test_samples_of_sflow_are_those_that_nfdump_stores(tmp_path: Path) -> None:
    capture = tmp_path / "traffic.pcap"
    write_pcap(TrafficProfile(seed=6, packets_per_second=500), capture, 1000)
    with capture.open("rb") as file:
        frames = [frame for _, frame in dpkt.pcap.Reader(file)]
    samples = [sflow.sample([sflow.header(frame[:128], len(frame))], rate=10) for frame in frames]
    datagrams = [
        sflow.datagram(samples[n : n + 7], n // 7, sub_agent=2) for n in range(0, len(samples), 7)
    ]
    found, source = decoded(tmp_path, datagrams)
    assert source.stats.dropped_packets == 0
    of_gscope = Counter(map(_as_sfcapd, found))
    assert of_gscope == of_nfdump(collected(datagrams, tmp_path / "sfcapd", "sfcapd"))
    assert of_gscope.total() == 1000


def _as_sfcapd(record: Record | str) -> tuple[str, ...]:
    """A record as sfcapd stores it: scaled, the type of ICMP as a port, and zeros without IP."""
    assert isinstance(record, dict)
    interval = record["sampling_interval"]
    counts = [str(interval * record[name]) for name in ("packets", "bytes")]
    if "srcIP" not in record:
        return ("0.0.0.0", "0.0.0.0", "0", "0", "0", *counts)
    source, destination, *rest = _as_nfdump(record)[:5]
    if "type" in record:
        rest[:2] = str(record["type"]), f"0.{record['code']}"
    return (source, destination, *rest, *counts)


def _as_nfdump(record: Record | str) -> tuple[str, ...]:
    assert isinstance(record, dict)
    port = f"{record['type']}.{record['code']}" if "type" in record else record["destPort"]
    values = (record["srcIP"], record["destIP"], record["srcPort"], port, record["protocol"])
    return tuple(map(str, (*values, record["packets"], record["bytes"])))
