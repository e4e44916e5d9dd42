"""The flow records of files of nfcapd: values by construction, and against a slow reader."""

from __future__ import annotations

import gzip
import random
import struct
from ipaddress import ip_address
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.flows.exports import EXPORTER, capture_of, udp_packet, v5, v5_record
from tests.capture.sources.nfcapd.flow_files import (
    BZ2,
    CREATED_S,
    LZ4,
    PLAIN,
    ZSTD,
    address,
    addresses,
    block,
    element,
    exporter_info,
    flow_file,
    generic,
    header,
    old_sampler,
    record,
    sampler,
)
from tests.capture.sources.nfcapd.read import read
from tests.capture.sources.nfcapd.slow_reader import ODD, read_file

from gscope.capture.sources.files import backward_steps
from gscope.capture.sources.files.backward_steps import BackwardSteps
from gscope.capture.sources.files.open import open_source
from gscope.errors import NotACaptureError

if TYPE_CHECKING:
    from pathlib import Path

V4 = addresses("10.0.0.1", "198.51.100.9")
MS, S = 10**6, 10**9


def written(folder: Path, data: bytes, name: str = "nfcapd.202611241445") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_values_of_a_record(tmp_path: Path) -> None:
    elements = [
        *(generic(), V4),
        element(4, struct.pack("<II4B4x", 3, 4, 24, 16, 1, 0)),
        element(6, struct.pack("<II", 101, 7)),
        element(7, struct.pack("<II", 64512, 4_200_000_000)),
        element(10, address("10.9.9.9")),
        element(12, address("192.0.2.7")),
        element(14, bytes(40)),
    ]
    content = exporter_info(1, "192.0.2.7", 9) + record(*elements, exporter=1)
    ((time_ns, fields),), source = read(written(tmp_path, flow_file([content])))
    assert time_ns == 1_700_000_010_000 * MS
    assert isinstance(fields, dict)
    assert {name: str(value) for name, value in fields.items()} == {
        "srcIP": "10.0.0.1",
        "destIP": "198.51.100.9",
        "next_hop": "10.9.9.9",
        "exporter": "192.0.2.7",
        "domain": "9",
        "first": str(1_700_000_001_001 * MS),
        "last": str(1_700_000_002_002 * MS),
        "packets": "3",
        "bytes": "300",
        "srcPort": "1234",
        "destPort": "80",
        "protocol": "6",
        "flags": "27",
        "tos": "40",
        "input_interface": "3",
        "output_interface": "4",
        "src_mask": "24",
        "dest_mask": "16",
        "direction": "1",
        "vlan": "101",
        "srcAS": "64512",
        "destAS": "4200000000",
        "ipversion": "4",
        "sampling_interval": "1",
    }
    assert source.damage == []
    assert source.stats.received_packets == 1


def test_ipv6_and_icmp(tmp_path: Path) -> None:
    v6 = addresses("2001:db8::1", "::ffff:1.2.3.4")
    hop = element(11, address("fe80::1"))
    content = exporter_info(2, "2001:db8::e", 3) + record(
        generic(ports=(9, 0x8100), protocol=58), v6, hop, exporter=2
    )
    ((_, fields),), _ = read(written(tmp_path, flow_file([content])))
    assert isinstance(fields, dict)
    names = ("srcIP", "destIP", "next_hop", "exporter", "type", "code", "destPort", "ipversion")
    shown = [str(fields[name]) for name in names]
    assert shown == [
        "2001:db8::1",
        str(ip_address("::ffff:1.2.3.4")),
        "fe80::1",
        "2001:db8::e",
        "129",
        "0",
        "0",
        "6",
    ]


@pytest.mark.parametrize(
    ("times", "expected_ns"),
    [
        ((5000, 1000, 2000), 5000 * MS),
        ((0, 1000, 2000), 2000 * MS),
        ((0, 1000, 0), CREATED_S * S),
        ((2**63, 1000, 2000), 2000 * MS),
        ((2**60, 0, 2**62), CREATED_S * S),
    ],
)
def test_time_is_when_a_record_was_received(
    times: tuple[int, int, int], expected_ns: int, tmp_path: Path
) -> None:
    ((time_ns, _),), _ = read(written(tmp_path, flow_file([record(generic(*times), V4)])))
    assert time_ns == expected_ns


def test_a_record_without_time_has_that_of_the_one_before(tmp_path: Path) -> None:
    content = record(generic(received_ms=7000), V4) + record(V4)
    found, _ = read(written(tmp_path, flow_file([content])))
    assert [time_ns for time_ns, _ in found] == [7000 * MS] * 2


@pytest.mark.parametrize(
    ("before", "flags", "counts", "expected"),
    [
        (sampler(1, 1, 9), 2, (30, 3000), (10, 3, 300)),
        (sampler(1, 2, 18), 2, (30, 3000), (10, 3, 300)),
        (old_sampler(1, 10), 2, (30, 3000), (10, 3, 300)),
        (sampler(1, 1, 9), 0, (30, 3000), (1, 30, 3000)),
        (sampler(1, 1, 9), 2, (30, 3001), (1, 30, 3001)),
        (sampler(1, 0, 9), 2, (30, 3000), (1, 30, 3000)),
        (sampler(1, 1, 9) + sampler(1, 1, 99, 2), 2, (300, 30000), (1, 300, 30000)),
        (sampler(1, 1, 9) + sampler(1, 1, 9, 2), 2, (30, 3000), (10, 3, 300)),
        (sampler(2, 1, 9), 2, (30, 3000), (1, 30, 3000)),
        (b"", 2, (30, 3000), (1, 30, 3000)),
    ],
)
def test_counts_that_nfcapd_multiplied_are_those_exported(
    before: bytes,
    flags: int,
    counts: tuple[int, int],
    expected: tuple[int, int, int],
    tmp_path: Path,
) -> None:
    flow = record(generic(counts=counts), V4, exporter=1, flags=flags)
    content = exporter_info(1, "192.0.2.7", 9) + before + flow
    ((_, fields),), _ = read(written(tmp_path, flow_file([content])))
    assert isinstance(fields, dict)
    names = ("sampling_interval", "packets", "bytes")
    assert tuple(fields[name] for name in names) == expected


@pytest.mark.parametrize("compression", [PLAIN, BZ2, LZ4, ZSTD])
def test_compressed_files_have_the_same_records(compression: int, tmp_path: Path) -> None:
    contents = [random_content(random.Random(seed), 300) for seed in range(3)]
    found, source = read(written(tmp_path, flow_file(contents, compression=compression)))
    assert found == read_file(flow_file(contents))
    assert source.damage == []


@pytest.mark.parametrize("seed", range(12))
def test_random_files_are_read_as_a_slow_reader_does(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    contents = [random_content(chance, chance.choice((1, 50, 4000))) for _ in range(3)]
    data = flow_file(contents)
    found, source = read(written(tmp_path, data), block_bytes=chance.choice((16, 5000, 1 << 19)))
    assert found == read_file(data)
    assert source.stats.received_packets == len(found)


def random_content(chance: random.Random, records: int) -> bytes:
    made = b""
    for _ in range(records):
        kind = chance.randrange(12)
        number = chance.randrange(4)
        if kind == 0:
            ip = chance.choice(("192.0.2.7", "2001:db8::7", "::ffff:9.9.9.9", "::"))
            made += exporter_info(number, ip, chance.randrange(1 << 32))
        elif kind == 1:
            made += sampler(number, chance.randrange(3), chance.randrange(100))
        elif kind == 2:
            made += struct.pack("<HH", chance.choice((8, 12, 700)), 12) + bytes(8)
        else:
            made += random_record(chance, number)
    return made


def random_record(chance: random.Random, number: int) -> bytes:
    factor = chance.choice((1, 10, 1 << 50))
    elements = [
        generic(
            chance.choice((0, 1_700_000_000_000 + chance.randrange(10**6), 2**64 - 1)),
            chance.randrange(2**41),
            chance.choice((0, chance.randrange(2**41), 2**63 + 5)),
            (chance.randrange(2**13) * factor, chance.randrange(2**14) * factor),
            (chance.randrange(1 << 16), chance.randrange(1 << 16)),
            chance.choice((1, 6, 17, 47, 58, 132)),
        ),
        chance.choice((V4, addresses("2001:db8::1", "::ffff:9.9.9.9"))),
        element(chance.randrange(1, 30), chance.randbytes(4 * chance.randrange(13))),
        element(chance.randrange(1, 30), chance.randbytes(4 * chance.randrange(13))),
    ]
    chance.shuffle(elements)
    flags = chance.randrange(4)
    return record(*elements[: chance.randrange(5)], exporter=number, flags=flags)


def test_files_in_sequence_and_exports_are_one_interface(tmp_path: Path) -> None:
    first = written(tmp_path, flow_file([record(generic(), V4)]), "nfcapd.1")
    packed = gzip.compress(flow_file([record(generic(counts=(5, 500)), V4)], compression=LZ4))
    third = written(tmp_path, packed, "nfcapd.2.gz")
    exports = written(tmp_path, capture_of([udp_packet(v5([v5_record()]))]), "exports.pcap")
    found, source = read(first, exports, third)
    packets = [fields["packets"] for _, fields in found if isinstance(fields, dict)]
    assert packets == [3, 3, 5]
    assert str(found[1][1]["exporter"]) == EXPORTER  # type: ignore[index]
    assert source.damage == []
    assert source.stats.received_packets == 3


def test_the_walk_finds_the_skew_of_a_sorted_file(tmp_path: Path) -> None:
    times = (9000, 4000, 9500)
    content = b"".join(record(generic(received_ms=ms), V4) for ms in times)
    for compression in (PLAIN, LZ4):
        path = written(tmp_path, flow_file([content], compression=compression))
        steps = BackwardSteps({"a": (str(path),)})
        assert steps.deepest_ns("a") == 5000 * MS
        steps.close()


def test_compressed_files_count_as_compressed_for_the_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backward_steps, "WALKED_COMPRESSED_BYTES", 0)
    for compression, deepest_ns in ((PLAIN, 0), (LZ4, None)):
        path = written(tmp_path, flow_file([record(V4)], compression=compression))
        steps = BackwardSteps({"a": (str(path),)})
        assert steps.deepest_ns("a") == deepest_ns
        steps.close()


def test_sequence_failures_are_reported(tmp_path: Path) -> None:
    for compression in (PLAIN, BZ2):
        data = flow_file([record(V4)], failures=4, compression=compression)
        _, source = read(written(tmp_path, data))
        (sentence,) = source.damage
        assert "sequence failures that the collector noted: 4; how many records" in sentence
        assert source.stats.dropped_packets == 0


def test_an_empty_file_has_no_records_and_no_damage(tmp_path: Path) -> None:
    found, source = read(written(tmp_path, flow_file([])))
    assert (found, source.damage, source.stats.received_packets) == ([], [], 0)


def test_a_file_that_is_being_written_is_read_as_far_as_it_is(tmp_path: Path) -> None:
    whole = flow_file([record(generic(), V4)] * 2, is_complete=False)
    found, source = read(written(tmp_path, whole, "nfcapd.current.7"))
    assert len(found) == 2
    (sentence,) = source.damage
    assert sentence.endswith(
        "not complete: its writer has not closed it after 2 blocks, which are read"
    )
    found, source = read(written(tmp_path, whole + block(record(generic(), V4))[:-1], "cut"))
    assert [fields == ODD for _, fields in found] == [False, False, True]
    assert "after 2 blocks, which are read; the last 87 bytes belong to a block" in source.damage[0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xa5\x0c\0\2" + bytes(36), "big-endian machine"),
        (b"\x0c\xa5\1\0" + bytes(200), r"layout 1; nfdump 1.7 converts it: nfdump -r .* -w NEW"),
        (b"\x0c\xa5\3\0" + bytes(200), "layout 3; gscope reads layout 2"),
        (header(0, 0, 0, 0, 0)[:39], "ends within its header, after 39 of 40 bytes"),
        (header(0, 0, 0, 0, 0)[:2], "ends within its header, after 2 of 40 bytes"),
        (header(0, 5, 0, 0, 0), "unknown compression 5; nfdump -J 3 -r "),
        (header(0, 0, 0, 0, 0)[:17] + b"\1" + bytes(22), "an encrypted file of nfcapd"),
    ],
)
def test_other_files_are_refused(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(NotACaptureError, match=message):
        read(written(tmp_path, data))


def test_files_are_refused_where_packets_are_wanted(tmp_path: Path) -> None:
    path = written(tmp_path, flow_file([record(V4)]))
    with pytest.raises(NotACaptureError, match="is a file of nfcapd, which is not wanted"):
        open_source(str(path), no_flow_records="which is not wanted")
