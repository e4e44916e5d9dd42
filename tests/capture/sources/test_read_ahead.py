from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.files.capture_bytes import drain, expected_of, packets_in, pcap_of

from gscope.capture.sources.base import NO_RING, InputState, RingUse, SourceStats
from gscope.capture.sources.block import Block
from gscope.capture.sources.files.chain import ChainSource
from gscope.capture.sources.files.file import FileSource
from gscope.capture.sources.read_ahead import RingSource
from gscope.errors import CaptureError

if TYPE_CHECKING:
    from pathlib import Path

PAYLOADS = [bytes((number % 256,)) * (number % 100) for number in range(3000)]


class Scripted:
    """A block source of ``total`` blocks of one packet.

    It counts the blocks made and fails on wish.
    """

    def __init__(self, total: int, failure: Exception | None = None) -> None:
        self.name = "scripted"
        self.device = "scripted"
        self.stats = SourceStats()
        self.size_bytes: int | None = None
        self.damage: list[str] = []
        self.block_bytes = 64
        self.made = 0
        self.filled = threading.Semaphore(0)
        self.is_closed = False
        self._total = total
        self._failure = failure

    def open(self) -> None:
        """Nothing to open."""

    def new_block(self) -> Block:
        self.made += 1
        return Block.allocate(64, 1)

    def fill(self, block: Block) -> bool:
        if self.stats.received_packets == self._total:
            if self._failure is not None:
                raise self._failure
            return False
        block.count = 1
        block.offset[0] = block.caplen[0] = block.linktype[0] = 0
        block.time_ns[0] = block.wirelen[0] = self.stats.received_packets
        self.stats.received_packets += 1
        self.filled.release()
        return True

    def next_block(self) -> Block | None:
        raise AssertionError

    def is_ready(self, timeout_s: float) -> bool:
        raise AssertionError

    def state(self) -> InputState:
        return InputState.READING

    def ring_use(self) -> RingUse:
        return NO_RING

    def interrupt(self) -> None:
        """Never waits."""

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("slots", [0, 2, 3, 7])
def test_hands_out_everything_in_order(slots: int, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(pcap_of(PAYLOADS))
    ring = RingSource(FileSource(str(path), block_bytes=1000), slots)
    ring.open()
    assert ring.size_bytes == path.stat().st_size
    assert drain(ring) == expected_of(PAYLOADS)
    assert ring.next_block() is None


def test_reads_ahead_as_far_as_there_are_slots_and_no_further() -> None:
    source = Scripted(100)
    ring = RingSource(source, 3)
    ring.open()
    assert [source.filled.acquire(timeout=10) for _ in range(3)] == [True] * 3
    first = ring.next_block()
    assert first is not None
    assert not source.filled.acquire(blocking=False)
    assert ring.ring_use().occupancy == 2 / 3
    assert ring.stats.received_packets == 1
    ring.next_block()
    assert source.filled.acquire(timeout=10)
    assert source.made == 3
    ring.close()
    assert source.is_closed


def test_a_block_keeps_its_packets_until_the_next_is_asked_for() -> None:
    source = Scripted(100)
    ring = RingSource(source, 2)
    ring.open()
    for number in range(100):
        block = ring.next_block()
        assert block is not None
        assert block.time_ns[0] == number
        if number < 99:
            assert source.filled.acquire(timeout=10)
        assert block.time_ns[0] == number
    assert ring.next_block() is None
    ring.close()


def test_blocks_are_made_only_when_needed() -> None:
    source = Scripted(1)
    ring = RingSource(source, 8)
    ring.open()
    while ring.next_block() is not None:
        pass
    assert source.made <= 2
    ring.close()


def test_an_exception_of_the_reader_comes_out_behind_the_blocks_before_it() -> None:
    ring = RingSource(Scripted(2, OSError("the cable")))
    ring.open()
    assert ring.next_block() is not None
    assert ring.next_block() is not None
    for _ in range(2):
        with pytest.raises(OSError, match="the cable"):
            ring.next_block()
    ring.close()


def test_what_cannot_be_opened_raises_and_starts_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    ring = RingSource(FileSource(str(tmp_path / "none")))
    with pytest.raises(CaptureError):
        ring.open()
    ring.close()
    assert threading.active_count() == before


@pytest.mark.parametrize("taken", [0, 1, 5])
def test_close_ends_a_thread_that_waits_for_a_free_block(taken: int) -> None:
    before = threading.active_count()
    ring = RingSource(Scripted(10**9), 2)
    ring.open()
    for _ in range(taken):
        ring.next_block()
    ring.close()
    ring.close()
    assert threading.active_count() == before
    assert ring.next_block() is None


def test_close_ends_a_thread_that_waits_for_a_pipe(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    keeper = os.open(fifo, os.O_RDWR)
    os.write(keeper, pcap_of([b"abc", b"de"]))
    before = threading.active_count()
    ring = RingSource(FileSource(str(fifo)))
    ring.open()
    block = ring.next_block()
    assert block is not None
    assert list(packets_in(block)) == expected_of([b"abc", b"de"])
    ring.close()
    assert threading.active_count() == before
    os.close(keeper)


def test_close_ends_a_thread_that_waits_for_the_writer_of_a_chained_pipe(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    first = tmp_path / "first"
    first.write_bytes(pcap_of([b"abc"]))
    before = threading.active_count()
    ring = RingSource(ChainSource([FileSource(str(first)), FileSource(str(fifo))], name="c"))
    ring.open()
    assert ring.next_block() is not None
    ring.close()
    assert threading.active_count() == before
    assert ring.damage == []


def test_close_wakes_a_consumer_that_waits(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    keeper = os.open(fifo, os.O_RDWR)
    os.write(keeper, pcap_of([]))
    ring = RingSource(FileSource(str(fifo)))
    ring.open()
    answers: list[Block | None] = []
    consumer = threading.Thread(target=lambda: answers.append(ring.next_block()))
    consumer.start()
    ring.close()
    consumer.join(10)
    assert answers == [None]
    os.close(keeper)


def test_damage_of_the_source_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(pcap_of(PAYLOADS)[:-1])
    ring = RingSource(FileSource(str(path), block_bytes=1000))
    ring.open()
    assert len(drain(ring)) == len(PAYLOADS) - 1
    assert len(ring.damage) == 1
