"""Truncated, damaged and hostile files of nfcapd: nothing is lost silently, nothing is invented."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING

import lz4.block
import pytest
from tests.capture.sources.nfcapd.flow_files import (
    BZ2,
    LZ4,
    LZO,
    PACK,
    PLAIN,
    ZSTD,
    addresses,
    block,
    exporter_info,
    flow_file,
    generic,
    header,
    record,
)
from tests.capture.sources.nfcapd.read import read
from tests.capture.sources.nfcapd.slow_reader import ODD, read_file

from gscope.capture.sources.nfcapd import unpack

if TYPE_CHECKING:
    from pathlib import Path

FLOW = record(generic(), addresses("10.0.0.1", "10.0.0.2"))


def file_of(folder: Path, data: bytes) -> Path:
    path = folder / "nfcapd.202611241445"
    path.write_bytes(data)
    return path


def test_a_file_that_is_truncated_anywhere(tmp_path: Path) -> None:
    """What is whole is read, the rest is one record that cannot be decoded, and a sentence."""
    content = exporter_info(1, "192.0.2.7", 9) + FLOW * 2
    data = flow_file([content, FLOW])
    end = data.index(struct.pack("<HH", 0x8001, 9)) - 12
    for size in range(40, end + 1):
        found, source = read(file_of(tmp_path, data[:size]))
        assert found == read_file(data[:size])
        if size < end:
            assert any(f": truncated at byte {size}, after " in each for each in source.damage)
        else:
            assert source.damage == []
    # Without its appendix the file has all records.
    assert [fields for _, fields in found].count(ODD) == 0


@pytest.mark.parametrize("compression", [BZ2, LZ4, ZSTD])
def test_a_truncated_block_that_is_compressed_is_damaged(compression: int, tmp_path: Path) -> None:
    data = flow_file([FLOW * 3, FLOW * 50], compression=compression)
    first = 40 + 12 + len(PACK[compression](FLOW * 3))
    found, source = read(file_of(tmp_path, data[: first + 30]))
    assert [fields == ODD for _, fields in found] == [False] * 3 + [True]
    assert source.stats.received_packets == 4
    assert f"truncated at byte {first + 30}, after 1 of 2 blocks" in source.damage[0]
    assert "1 of 2 blocks are damaged" in source.damage[1]


@pytest.mark.parametrize("seed", range(6))
def test_random_damage_is_counted_as_a_slow_reader_counts_it(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    whole = flow_file([exporter_info(1, "2001:db8::1", 4) + FLOW * 5, FLOW * 3])
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            # Not in the header, of which each field has a test.
            data[chance.randrange(40, len(data) - 200)] = chance.choice((0, 1, 255, 11, 200))
        found, source = read(file_of(tmp_path, bytes(data)))
        assert found == read_file(bytes(data))
        assert source.stats.received_packets == len(found)


@pytest.mark.parametrize("compression", [BZ2, LZ4, ZSTD, LZO])
def test_damaged_compression_loses_one_block(compression: int, tmp_path: Path) -> None:
    good = block(FLOW, flags=1)
    content = PACK[compression](FLOW * 90) if compression in PACK else bytes(range(200, 255))
    chance = random.Random(compression)
    lost = 0
    for _ in range(100):
        bad = bytearray(content)
        for _ in range(3):
            bad[chance.randrange(len(bad))] ^= chance.randrange(1, 256)
        body = good + block(bytes(bad)) + good
        head = header(0, compression, 0, 40 + len(body), 3)
        found, source = read(file_of(tmp_path, head + body))
        # A damaged block has a record for the damage, or what the damage left plausible.
        assert [found[0][1], found[-1][1]] == [read_file(flow_file([FLOW]))[0][1]] * 2
        damaged = sum("1 of 3 blocks are damaged" in each for each in source.damage)
        assert damaged <= [fields for _, fields in found].count(ODD)
        lost += damaged
    assert lost > 10


def test_blocks_of_other_kinds_are_skipped(tmp_path: Path) -> None:
    body = block(FLOW) + block(b"\xff" * 99, kind=4) + block(FLOW)
    found, source = read(file_of(tmp_path, header(0, PLAIN, 0, 40 + len(body), 3) + body))
    assert len(found) == 2
    assert source.damage == []


@pytest.mark.parametrize("compression", [BZ2, LZ4, ZSTD])
def test_decompression_bombs_take_bounded_memory(
    compression: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block of good records that is larger than any block of nfdump is damage."""
    monkeypatch.setattr(unpack, "MAX_BLOCK_BYTES", 1 << 18)
    much = FLOW * ((1 << 18) // len(FLOW) + 1)
    bomb = (
        lz4.block.compress(much, store_size=False)
        if compression == LZ4
        else PACK[compression](much)
    )
    body = block(bomb) + block(FLOW, flags=1)
    path = file_of(tmp_path, header(0, compression, 0, 40 + len(body), 2) + body)
    found, source = read(path)
    assert [fields == ODD for _, fields in found] == [True, False]
    assert "1 of 2 blocks are damaged" in source.damage[0]


def test_a_block_may_not_claim_any_size(tmp_path: Path) -> None:
    body = block(FLOW) + struct.pack("<IIHH", 1, 0xFFFFFFF0, 3, 0) + FLOW
    found, source = read(file_of(tmp_path, header(0, PLAIN, 0, 40 + len(body), 9) + body))
    assert [fields == ODD for _, fields in found] == [False, True]
    at = 40 + 12 + len(FLOW)
    assert (
        f"the block at byte {at} claims 4294967280 bytes; the rest is ignored" in source.damage[0]
    )


@pytest.mark.parametrize("created_s", [-(2**63), -1, 0, 2**63 - 1])
def test_any_time_of_creation_is_harmless(created_s: int, tmp_path: Path) -> None:
    data = flow_file([record(addresses("10.0.0.1", "10.0.0.2"))], created_s=created_s)
    found, _ = read(file_of(tmp_path, data))
    assert found == read_file(data)
    assert 0 <= found[0][0] < 2**63


def test_the_appendix_may_be_anything(tmp_path: Path) -> None:
    data = flow_file([FLOW], failures=3)
    for at in range(40 + 12 + len(FLOW), len(data)):
        for value in (0, 255):
            changed = data[:at] + bytes([value]) + data[at + 1 :]
            found, _ = read(file_of(tmp_path, changed))
            assert len(found) == 1
