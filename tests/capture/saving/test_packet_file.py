"""The file of saved packets.

What is in it, and what becomes of it when the disk does not follow.
"""

from __future__ import annotations

import os
import random
import resource
import struct
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.capture.saving.pcapng_reader import SavedPacket, read_pcapng
from tests.support.gscope_command import wait_for

from gscope.capture.saving import packet_file
from gscope.capture.saving.packet_file import PacketFile
from gscope.capture.saving.packet_saver import PacketSaver
from gscope.capture.settings import SavedPackets, SavedQuery
from gscope.capture.sources.block import Block
from gscope.queries.run_folder.layout import CAPTURE_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUERIES = (
    SavedQuery("a", "web"),
    SavedQuery("b", "größe"),
    SavedQuery("a", "web again"),
)
NAMES = {0: (), 1: ("web", "web again"), 2: ("größe",), 3: ("web", "web again", "größe")}
"""The comments of each mark: LFTA ``a`` has bit 0, ``b`` bit 1."""


class Folder:
    """A folder of a run and a file for packets."""

    def __init__(self, path: Path) -> None:
        self.path = path / "hits.pcapng"
        self._run_dir = path
        (path / CAPTURE_FOLDER).mkdir()
        self._descriptors: list[int] = []

    def open(self, *, is_live: bool = False, limit_bytes: int | None = None) -> PacketFile:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT)
        self._descriptors.append(descriptor)
        saved = SavedPackets(descriptor, QUERIES, str(self.path), limit_bytes)
        return PacketFile(saved, self._run_dir, is_live)

    @property
    def packets(self) -> list[SavedPacket]:
        return read_pcapng(self.path.read_bytes())

    def close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path)
    yield made
    made.close()


def block_of(packets: list[SavedPacket]) -> Block:
    block = Block.allocate(sum(len(each.data) for each in packets) + 64, len(packets))
    at = 7
    for i, each in enumerate(packets):
        block.data[at : at + len(each.data)] = np.frombuffer(each.data, np.uint8)
        block.offset[i], block.caplen[i], block.wirelen[i] = at, len(each.data), each.wirelen
        block.time_ns[i], block.linktype[i] = each.time_ns, each.link
        at += len(each.data)
    block.fill_in(len(packets))
    return block


def packet(number: int, size: int = 60, interface: str = "up") -> SavedPacket:
    return SavedPacket(
        interface, 1, 10**18 + number, size + 4, bytes([number % 256]) * size, ("web",)
    )


def save(saver: PacketSaver, packets: list[SavedPacket], marks: list[int]) -> None:
    """Pass packets on as a kernel does that sets these marks."""
    block = block_of(packets)
    saver.begin(block.count)
    saver._marks[: block.count] = marks
    # In two parts, as when the clock stops within a block.
    middle = block.count // 3
    saver.save(block, 0, middle)
    saver.begin(block.count)
    saver.save(block, middle, block.count)
    assert not saver._marks.any()


def test_the_file_has_exactly_the_marked_packets(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packet_file, "BUFFER_BYTES", 2000)
    chance = random.Random(4)
    file = folder.open()
    savers = {name: PacketSaver(file, name) for name in ("up", "down")}
    expected: dict[str, list[SavedPacket]] = {name: [] for name in savers}
    for turn in range(60):
        name = chance.choice(["up", "down"])
        packets, marks = [], []
        for _ in range(chance.randrange(30)):
            # A packet that is larger than a buffer, one without bytes, one from before 1970.
            size = chance.choice([0, 1, 2, 3, 60, 61, 62, 63, 1500, 5000])
            time_ns = chance.choice([0, -1, -9_000_000_000_123_456_789, 2**63 - 1, 10**18 + turn])
            mark = chance.choice([0, 0, 1, 2, 3])
            link = chance.choice([1, 101, 276])
            made = SavedPacket(
                name, link, time_ns, size + chance.randrange(9), chance.randbytes(size), NAMES[mark]
            )
            packets.append(made)
            marks.append(mark)
            if mark:
                expected[name].append(made)
        save(savers[name], packets, marks)
        if chance.random() < 0.3:
            savers[name].flush()
    for saver in savers.values():
        saver.finish()
    file.close()
    found = folder.packets
    assert {name: [p for p in found if p.interface == name] for name in savers} == expected
    assert file.counters.packets == len(found) == sum(map(len, expected.values())) > 300
    assert file.counters.bytes == folder.path.stat().st_size
    assert not file.counters.lost


def test_a_file_without_packets_is_a_capture(folder: Folder) -> None:
    file = folder.open()
    PacketSaver(file, "up").finish()
    file.close()
    assert folder.packets == []
    assert folder.path.stat().st_size == file.counters.bytes > 0


@pytest.mark.parametrize("limit_bytes", [1, 500, 5000, 20_000])
def test_a_file_does_not_exceed_its_limit(folder: Folder, limit_bytes: int) -> None:
    file = folder.open(limit_bytes=limit_bytes)
    saver = PacketSaver(file, "up")
    packets = [packet(i) for i in range(100)]
    save(saver, packets, [1] * 100)
    # Small ones that would fit: the file ends with the first packet that does not.
    small = [packet(i, 1) for i in range(10)]
    save(saver, small, [1] * 10)
    saver.finish()
    file.close()
    found = folder.packets
    assert [p.data for p in found] == [p.data for p in (*packets, *small)][: len(found)]
    assert file.counters.packets == len(found)
    assert file.counters.over_limit == 110 - len(found)
    assert folder.path.stat().st_size <= max(limit_bytes, 200)
    assert (len(found) > 0) == (limit_bytes > 1)


@pytest.mark.parametrize("savers", [2, 16])
@pytest.mark.parametrize("limit_bytes", [50_000, 200_000])
def test_what_other_interfaces_have_not_filled_is_left_for_all(
    folder: Folder, savers: int, limit_bytes: int
) -> None:
    file = folder.open(limit_bytes=limit_bytes)
    made = [PacketSaver(file, f"if{n}") for n in range(savers)]
    count = 0
    while not file.counters.over_limit:
        for saver in made:
            save(saver, [packet(count)], [1])
            count += 1
        for saver in made:
            saver.flush()
    for saver in made:
        saver.finish()
    file.close()
    assert file.counters.packets == len(folder.packets) == count - file.counters.over_limit
    size = folder.path.stat().st_size
    # At the end each buffer has room for a packet or two of some hundred bytes.
    assert limit_bytes - 256 * (savers + 1) < size <= limit_bytes


def test_a_full_disk_costs_packets_and_nothing_else(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packet_file, "BUFFER_BYTES", 1000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    file = folder.open(is_live=True)
    saver = PacketSaver(file, "up")
    resource.setrlimit(resource.RLIMIT_FSIZE, (5500, before[1]))
    try:
        save(saver, [packet(i) for i in range(100)], [1] * 100)
        saver.finish()
        counters = file.counters
        wait_for(lambda: counters.packets + counters.unwritten == 100, "the last write")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert 0 < file.counters.packets < 100
    assert file.counters.failure == "file too large"
    assert len(folder.packets) == file.counters.packets
    # There is room again.
    save(saver, [packet(200)], [1])
    saver.finish()
    file.close()
    assert folder.packets[-1].data == packet(200).data
    assert file.counters.packets == len(folder.packets) == 101 - file.counters.unwritten


def test_a_slow_disk_does_not_delay_a_live_capture(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packet_file, "BUFFER_BYTES", 1000)
    may_write = threading.Event()
    pwrite = os.pwrite

    def slow(*arguments: object) -> int:
        may_write.wait(60)
        return pwrite(*arguments)  # type: ignore[arg-type]

    file = folder.open(is_live=True)
    monkeypatch.setattr(os, "pwrite", slow)
    saver = PacketSaver(file, "up")
    save(saver, [packet(i) for i in range(2000)], [1] * 2000)
    lost = file.counters.outrun
    assert 0 < lost < 2000
    may_write.set()
    saver.finish()
    file.close()
    assert len(folder.packets) == file.counters.packets == 2000 - lost
    assert [p.data for p in folder.packets] == [packet(i).data for i in range(2000 - lost)]


@pytest.mark.parametrize("cut", range(0, 112, 13))
def test_a_restarted_daemon_continues_behind_the_last_whole_packet(
    folder: Folder, cut: int
) -> None:
    first = folder.open(is_live=True)
    saver = PacketSaver(first, "up")
    save(saver, [packet(i) for i in range(5)], [1] * 5)
    saver.finish()
    first.close()
    # It wrote further packets, the last one perhaps in part, and was killed.
    contents = folder.path.read_bytes()
    (length,) = struct.unpack("<I", contents[-4:])
    block = contents[-length:]
    with folder.path.open("ab") as written:
        written.write(block + block[: len(block) - cut])
    second = folder.open(is_live=True)
    saver = PacketSaver(second, "down")
    save(saver, [packet(9, interface="down")], [1])
    saver.finish()
    second.close()
    found = folder.packets
    assert [(p.interface, p.data[0]) for p in found] == [
        *(("up", i) for i in range(5)),
        *[("up", 4)] * (2 if cut == 0 else 1),
        ("down", 9),
    ]
    assert second.counters.packets == len(found)


def test_the_file_of_another_run_is_not_continued(folder: Folder) -> None:
    first = folder.open(is_live=True)
    saver = PacketSaver(first, "up")
    save(saver, [packet(1)], [1])
    saver.finish()
    first.close()
    # Rotated away: a new file of that name starts from the beginning.
    folder.path.rename(folder.path.with_suffix(".1"))
    second = folder.open(is_live=True)
    saver = PacketSaver(second, "up")
    save(saver, [packet(2)], [1])
    saver.finish()
    second.close()
    assert [p.data for p in folder.packets] == [packet(2).data]
    assert second.counters.packets == 1
