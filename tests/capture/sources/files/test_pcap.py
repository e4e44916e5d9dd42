from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
from typing import TYPE_CHECKING, Any, cast

import dpkt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.utils import RawPcapReader, RawPcapWriter
from tests.capture.sources.files.capture_bytes import (
    MICRO,
    MODIFIED,
    NANO,
    Packet,
    pcap_header,
    pcap_record,
    read_bytes,
)

if TYPE_CHECKING:
    from pathlib import Path

_READ = """
import sys
from gscope.capture.sources.files.open import open_source
print(open_source(sys.argv[1]).next_block().count)
"""


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "time_ns"), [(MICRO, 3_000_004_000), (NANO, 3_000_000_004)])
def test_reads_both_resolutions_in_both_byte_orders(order: str, magic: int, time_ns: int) -> None:
    data = pcap_header(order, magic, linktype=113) + pcap_record(b"abc", 3, 4, order, wirelen=99)
    assert read_bytes(data) == ([Packet(time_ns, 99, 113, b"abc")], [])


@pytest.mark.parametrize("order", ["<", ">"])
def test_reads_the_longer_records_of_the_modified_format(order: str) -> None:
    record = pcap_record(b"abc", 3, 4, order, extra=b"\xff" * 8)
    data = pcap_header(order, MODIFIED) + 2 * record
    assert read_bytes(data) == (2 * [Packet(3_000_004_000, 3, 1, b"abc")], [])


def test_ignores_the_flags_above_the_link_type() -> None:
    data = pcap_header(linktype=0xF400_0065) + pcap_record(b"a")
    assert read_bytes(data)[0][0].linktype == 101


def test_seconds_are_unsigned() -> None:
    (packet,), _ = read_bytes(pcap_header() + pcap_record(b"", 2**32 - 1, 999_999))
    assert packet.time_ns == (2**32 - 1) * 10**9 + 999_999_000


def test_fractions_of_more_than_a_second_are_carried_over() -> None:
    (packet,), _ = read_bytes(pcap_header() + pcap_record(b"", 1, 2**32 - 1))
    assert packet.time_ns == 10**9 + (2**32 - 1) * 1000


def test_a_record_may_be_longer_than_the_snap_length_claims() -> None:
    data = pcap_header(snaplen=10) + pcap_record(bytes(3000))
    assert [len(packet.data) for packet in read_bytes(data)[0]] == [3000]


def test_a_wire_length_beyond_31_bits_is_held_there() -> None:
    (packet,), _ = read_bytes(pcap_header() + pcap_record(b"a", wirelen=2**32 - 1))
    assert packet.wirelen == 2**31 - 1


def test_a_senseless_captured_length_ends_the_file_and_is_reported() -> None:
    broken = struct.pack("<4I", 1, 1, 0xDEADBEEF, 60)
    data = pcap_header() + pcap_record(b"abc") + broken + pcap_record(b"def")
    packets, damage = read_bytes(data)
    assert [packet.data for packet in packets] == [b"abc"]
    assert damage == [
        "f: the record at byte 43 claims 3735928559 captured bytes, more than 262144; "
        "the rest is ignored"
    ]


@pytest.mark.parametrize(
    ("version", "lengths"), [((2, 2), (9, 3)), ((2, 3), (9, 3)), ((2, 3), (3, 9)), ((2, 4), (3, 9))]
)
def test_old_versions_have_the_two_lengths_the_other_way_round(
    version: tuple[int, int], lengths: tuple[int, int]
) -> None:
    record = struct.pack("<4I", 1, 0, *lengths) + b"abc"
    packets, damage = read_bytes(pcap_header(version=version) + 2 * record)
    assert packets == 2 * [Packet(10**9, 9, 1, b"abc")]
    assert damage == []


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 999_999), st.binary(max_size=99))),
    st.sampled_from("<>"),
    st.booleans(),
)
def test_reads_what_scapy_writes(
    records: list[tuple[int, int, bytes]], endianness: str, nano: bool
) -> None:
    file = io.BytesIO()
    writer = RawPcapWriter(file, linktype=1, endianness=endianness, nano=nano)
    writer.write_header(None)
    for seconds, fraction, data in records:
        writer.write_packet(data, sec=seconds, usec=fraction)
    unit = 1 if nano else 1000
    expected = [Packet(s * 10**9 + f * unit, len(d), 1, d) for s, f, d in records]
    assert read_bytes(file.getvalue()) == (expected, [])


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=99), min_size=1), st.sampled_from("<>"))
def test_agrees_with_the_readers_of_dpkt_and_scapy(payloads: list[bytes], order: str) -> None:
    data = pcap_header(order) + b"".join(
        pcap_record(payload, number, number * 5, order, wirelen=len(payload) + number)
        for number, payload in enumerate(payloads)
    )
    packets, _ = read_bytes(data)
    assert [packet.data for packet in packets] == [d for _, d in dpkt.pcap.Reader(io.BytesIO(data))]
    assert [(packet.time_ns, packet.wirelen, packet.data) for packet in packets] == [
        (meta.sec * 10**9 + meta.usec * 1000, meta.wirelen, d)
        for d, meta in cast("Any", RawPcapReader)(io.BytesIO(data))
    ]


@pytest.mark.parametrize(("order", "kernels"), [("<", "usual"), (">", "unusual")])
def test_only_what_the_records_need_is_compiled(tmp_path: Path, order: str, kernels: str) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_header(order) + pcap_record(b"abc", order=order))
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "GSCOPE_BOUNDSCHECK": ""}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", _READ, str(path)]
    assert subprocess.check_output(command, env=environment) == b"1\n"
    assert list(tmp_path.rglob("*.nbi")) == []
    native = {file.name.split(".")[-3] for file in tmp_path.rglob("gscope.*.pcap.*.o")}
    assert native == {f"index_{kernels}"}
