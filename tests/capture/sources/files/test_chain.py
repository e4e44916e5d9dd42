from __future__ import annotations

import gzip
import os
import threading
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.files.capture_bytes import (
    drain,
    enhanced,
    expected_of,
    interface,
    pcap_of,
    section,
)

from gscope.capture.sources.files.open import open_source
from gscope.errors import CaptureError, CutCaptureError

if TYPE_CHECKING:
    from pathlib import Path

PAYLOADS = [bytes((number,)) * number for number in range(50)]


def _written(folder: Path, *contents: bytes) -> list[str]:
    paths = [folder / f"part{number}" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return [str(path) for path in paths]


def test_members_are_read_one_after_the_other(tmp_path: Path) -> None:
    paths = _written(tmp_path, pcap_of(PAYLOADS), gzip.compress(pcap_of(PAYLOADS)), pcap_of([]))
    source = open_source(*paths, name="eth0")
    assert source.name == "eth0"
    assert source.size_bytes == sum(os.stat(path).st_size for path in paths)  # noqa: PTH116
    assert drain(source) == 2 * expected_of(PAYLOADS)
    assert source.stats.received_packets == 100
    assert source.damage == []


def test_members_may_differ_in_format_and_link_type(tmp_path: Path) -> None:
    other = section() + interface(113) + enhanced(b"abc")
    source = open_source(*_written(tmp_path, pcap_of([b"a"]), other))
    assert [packet.linktype for packet in drain(source)] == [1, 113]


def test_damage_is_reported_under_the_name_of_the_member(tmp_path: Path) -> None:
    paths = _written(tmp_path, pcap_of(PAYLOADS)[:-1], pcap_of(PAYLOADS))
    source = open_source(*paths, name="eth0")
    assert len(drain(source)) == 99
    assert source.damage == [
        f"{paths[0]}: the last record is truncated after 64 of 65 bytes, at byte 1984"
    ]


def test_a_bad_member_is_found_before_the_work(tmp_path: Path) -> None:
    paths = _written(tmp_path, pcap_of(PAYLOADS), b"no capture at all")
    with pytest.raises(CaptureError, match="part1 is not a capture"):
        open_source(*paths)
    with pytest.raises(CaptureError, match=r"cannot open .*none"):
        open_source(paths[0], str(tmp_path / "none"))


def test_a_member_that_went_away_is_left_out_and_reported(tmp_path: Path) -> None:
    paths = _written(tmp_path, *3 * [pcap_of(PAYLOADS)])
    source = open_source(*paths)
    (tmp_path / "part1").unlink()
    assert len(drain(source)) == 100
    assert len(source.damage) == 1
    assert "part1" in source.damage[0]


def test_pipes_are_opened_when_their_turn_comes(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(pcap_of(PAYLOADS)))
    writer.start()
    source = open_source(*_written(tmp_path, pcap_of(PAYLOADS)), str(fifo))
    assert source.size_bytes is None
    assert drain(source) == 2 * expected_of(PAYLOADS)
    writer.join()


def test_blocks_suit_the_largest_member(tmp_path: Path) -> None:
    source = open_source(*_written(tmp_path, pcap_of([]), pcap_of([bytes(60_000)])))
    assert source.new_block().capacity_bytes > 60_000
    assert len(drain(source)) == 1


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_compressed_member_cut_in_its_header_is_left_out(place: int, tmp_path: Path) -> None:
    contents = [gzip.compress(pcap_of(PAYLOADS)) for _ in range(3)]
    contents[place] = gzip.compress(pcap_of(PAYLOADS))[:15]
    source = open_source(*_written(tmp_path, *contents))
    assert drain(source) == 2 * expected_of(PAYLOADS)
    assert len(source.damage) == 1
    assert f"part{place}" in source.damage[0]


def test_of_compressed_members_that_are_all_cut_nothing_can_be_read(tmp_path: Path) -> None:
    cut = gzip.compress(pcap_of(PAYLOADS))[:15]
    with pytest.raises(CutCaptureError, match="part0"):
        open_source(*_written(tmp_path, cut, cut))
