from __future__ import annotations

import gzip
import os
import subprocess
import threading
from typing import TYPE_CHECKING

import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capture.sources.files.capture_bytes import (
    drain,
    expected_of,
    packets_in,
    pcap_of,
    read_bytes,
)

from gscope.capture.sources.files.file import FileSource
from gscope.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAYLOADS = [os.urandom(number % 90) for number in range(3000)]
CAPTURE = pcap_of(PAYLOADS)
EXPECTED = expected_of(PAYLOADS)
SKIPPABLE = b"\x53\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def lz4_(data: bytes) -> bytes:
    packed: bytes = lz4.frame.compress(data, content_checksum=True)
    return packed


KINDS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstd, "lz4": lz4_}
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
def test_each_kind_is_found_by_content(kind: str) -> None:
    assert read_bytes(KINDS[kind](CAPTURE)) == (EXPECTED, [])


@each_kind
def test_members_follow_each_other_and_may_be_empty(kind: str) -> None:
    pack = KINDS[kind]
    third = len(CAPTURE) // 3
    packed = pack(b"") + pack(CAPTURE[:10]) + pack(CAPTURE[10:third]) + pack(CAPTURE[third:])
    assert read_bytes(packed) == (EXPECTED, [])


@each_kind
def test_a_member_for_every_byte_is_read(kind: str) -> None:
    small = pcap_of([b"abc"] * 40)
    packed = b"".join(KINDS[kind](bytes((value,))) for value in small)
    assert read_bytes(packed) == (expected_of([b"abc"] * 40), [])


def test_many_empty_members_take_little_time() -> None:
    packed = gzip.compress(b"") * 50_000 + gzip.compress(CAPTURE)
    assert read_bytes(packed) == (EXPECTED, [])


def test_members_of_different_kinds_may_follow_each_other() -> None:
    packed = b"".join(
        pack(CAPTURE[number::1][:1] if number < 2 else CAPTURE[2:])
        for number, pack in enumerate(KINDS.values())
    )
    assert read_bytes(packed) == (EXPECTED, [])


def test_skippable_frames_are_passed_over() -> None:
    packed = SKIPPABLE + zstd(CAPTURE[:99]) + SKIPPABLE + SKIPPABLE + lz4_(CAPTURE[99:]) + SKIPPABLE
    assert read_bytes(packed) == (EXPECTED, [])


def test_zeros_behind_gzip_are_padding() -> None:
    assert read_bytes(gzip.compress(CAPTURE) + bytes(512)) == (EXPECTED, [])


@each_kind
def test_what_else_follows_is_reported(kind: str) -> None:
    packed = KINDS[kind](CAPTURE)
    packets, damage = read_bytes(packed + b"rubbish")
    assert packets == EXPECTED
    assert damage == [
        f"f: the bytes after the {kind} data at byte {len(packed)} are not compressed; ignored"
    ]


@each_kind
def test_of_cut_data_what_came_out_is_used_and_the_rest_reported(kind: str) -> None:
    packed = KINDS[kind](CAPTURE)
    counts: list[int] = []
    for size in range(5000, len(packed), 997):
        reported = f"the {kind} data is truncated at byte {size}"
        try:
            packets, damage = read_bytes(packed[:size])
        except CaptureError as error:
            # Nothing comes out before the first block of zstd and lz4 is whole.
            packets, damage = [], [str(error)]
        assert packets == EXPECTED[: len(packets)]
        assert reported in damage[0]
        counts.append(len(packets))
    assert counts == sorted(counts)
    assert counts[-1] > 0


def test_a_wrong_checksum_loses_nothing_of_gzip() -> None:
    packed = bytearray(gzip.compress(CAPTURE))
    packed[-5] ^= 1
    packets, damage = read_bytes(bytes(packed))
    assert packets == EXPECTED
    assert len(damage) == 1
    assert "incorrect data check" in damage[0]


@each_kind
def test_damage_in_the_middle_keeps_what_came_before(kind: str) -> None:
    pack = KINDS[kind]
    first = CAPTURE[: len(CAPTURE) // 2]
    whole, _ = read_bytes(first)
    packed = pack(first) + pack(CAPTURE[len(first) :])
    middle = len(pack(first)) + 40
    packets, damage = read_bytes(packed[:middle] + b"\xff" * 64 + packed[middle + 64 :])
    assert packets[: len(whole)] == whole
    assert packets == EXPECTED[: len(packets)]
    assert f"the {kind} data is damaged near byte" in damage[0]


@settings(deadline=None)
@given(st.data())
def test_mutations_never_crash(data: st.DataObject) -> None:
    small = pcap_of([b"abcdefgh" * 9] * 30)
    packed = bytearray(data.draw(st.sampled_from(list(KINDS.values())))(small))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(4, len(packed) - 1))] = data.draw(st.integers(0, 255))
    try:
        packets, _ = read_bytes(bytes(packed[: data.draw(st.integers(0, len(packed)))]))
    except CaptureError:
        return
    assert len(packets) <= 10_000


@each_kind
def test_a_small_input_that_unpacks_to_much_is_read_in_small_blocks(kind: str) -> None:
    payload = bytes(60_000)
    packed = KINDS[kind](pcap_of([payload] * 1000))
    assert len(packed) < 1_000_000
    packets, damage = read_bytes(packed)
    assert (len(packets), damage) == (1000, [])


@each_kind
def test_packets_come_out_of_a_pipe_before_it_ends(kind: str, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    first, second = CAPTURE[: len(CAPTURE) // 2], CAPTURE[len(CAPTURE) // 2 :]
    seen = threading.Event()

    def write() -> None:
        with fifo.open("wb", buffering=0) as file:
            file.write(KINDS[kind](first))
            seen.wait(30)
            file.write(KINDS[kind](second))

    writer = threading.Thread(target=write)
    writer.start()
    source = FileSource(str(fifo))
    source.open()
    block = source.next_block()
    assert block is not None
    packets = list(packets_in(block))
    seen.set()
    while (block := source.next_block()) is not None:
        packets += packets_in(block)
    writer.join()
    assert packets == EXPECTED


def test_reads_what_the_gzip_program_writes(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(CAPTURE)
    packed = subprocess.run(["gzip", "-c", str(path)], capture_output=True, check=True).stdout
    assert read_bytes(packed) == (EXPECTED, [])


def test_position_counts_compressed_bytes(tmp_path: Path) -> None:
    path = tmp_path / "capture.bin"
    path.write_bytes(gzip.compress(CAPTURE))
    source = FileSource(str(path))
    source.open()
    assert source.size_bytes == path.stat().st_size
    assert len(drain(source)) == len(EXPECTED)
