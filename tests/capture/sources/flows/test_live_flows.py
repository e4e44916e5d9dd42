"""Flow records as they arrive on a UDP port: the records, losses, and hostile datagrams."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.capture.sources.flows.collector import MALFORMED, WITHOUT_TEMPLATE, Collector
from tests.capture.sources.flows.decoded import decoded, records_in
from tests.capture.sources.flows.exports import (
    ipfix,
    set_of,
    template,
    v5,
    v5_record,
    v9,
)
from tests.capture.sources.udp.port import blocks, free_port, sender

from gscope.capture.packet.flow.layout import RECORD_BYTES
from gscope.capture.sources.block import Block
from gscope.capture.sources.flows.live_source import LiveFlowSource
from gscope.capture.sources.udp.source import UdpSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from tests.capture.sources.flows.collector import Record

FIELDS = template(300, [(8, 4), (12, 4), (2, 4)])
ROW = bytes((10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 9))


class Flows:
    """A source of a port, and what it hands out for datagrams."""

    def __init__(self, port: int, buffer_bytes: int = 64 << 20) -> None:
        device = f"udp://127.0.0.1:{port}"
        self.source = LiveFlowSource(UdpSource("main", device, buffer_bytes=buffer_bytes))
        self.source.open()
        self.source.start()
        assert not self.source.prepare()

    def take(self) -> list[Record | str]:
        return [record for block in blocks(self.source) for record in records_in(block)]


def test_packets_without_records_do_not_keep_it_beyond_its_time() -> None:
    class Busy:
        """A device whose ring always has a block, of ARP alone."""

        name = device = "eth0"
        block = Block.allocate(64 * 64 + 64, 64)
        taken = 0

        def next_block(self, _timeout_s: float) -> Block:
            self.taken += 1
            assert self.taken < 1_000_000
            return self.block

        def release(self, block: Block) -> None:
            pass

    block = Busy.block
    block.data[:] = 0
    block.offset[:], block.caplen[:], block.wirelen[:] = np.arange(64) * 64, 60, 60
    block.time_ns[:], block.linktype[:] = 10**18, 1
    block.fill_in(64)
    busy = Busy()
    source = LiveFlowSource(busy)  # type: ignore[arg-type]
    assert source.next_block(0.2) is None
    assert source.next_block(0) is None
    assert busy.taken > 2


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def flows(port: int) -> Iterator[Flows]:
    made = Flows(port)
    yield made
    made.source.close()


@pytest.fixture
def send(port: int) -> Iterator[Callable[[Iterable[bytes]], None]]:
    with sender(port) as sending:
        yield sending


def test_records_are_those_of_a_capture_of_the_same_datagrams(
    flows: Flows, send: Callable[[Iterable[bytes]], None], tmp_path: Path
) -> None:
    datagrams = [
        v5([v5_record()] * 30, interval=10),
        v9([set_of(300, ROW)], 0),
        v9([set_of(0, FIELDS), set_of(300, ROW * 40)], 1),
        v9([set_of(300, ROW * 3)], 4),
        ipfix([set_of(2, FIELDS), set_of(300, ROW)]),
        ipfix([set_of(300, ROW * 2)], 6),
        b"no export",
        v5([v5_record(counts=(7, 8))], 32),
    ]
    send(datagrams)
    found = flows.take()
    expected, capture = decoded(tmp_path, datagrams)
    for record in (*found, *expected):
        if isinstance(record, dict):
            del record["exporter"]
    assert found == expected
    assert found.count(MALFORMED) == 1
    assert found.count(WITHOUT_TEMPLATE) == 1
    stats = flows.source.stats
    assert stats.dropped_packets == capture.stats.dropped_packets == 2 + 5 + 2
    assert stats.absent_packets == 9
    assert stats.received_packets == len(found) + 9


def test_the_slow_collector_finds_the_same(
    flows: Flows, send: Callable[[Iterable[bytes]], None]
) -> None:
    rng = random.Random(82)
    collector = Collector()
    expected: list[Record | str] = []
    # As many as fit into the buffer that every process is granted, and more records than a block
    # has.
    for sequence in range(150):
        records = [
            v5_record(f"10.0.0.{rng.randrange(9)}", counts=(rng.randrange(99), rng.randrange(999)))
            for _ in range(rng.randint(28, 30))
        ]
        datagram = v5(records, sequence)
        expected += collector.take(datagram, "127.0.0.1")
        send([datagram])
    assert len(expected) > 4096
    assert flows.take() == expected


def test_what_the_kernel_drops_is_not_counted_twice(port: int) -> None:
    flows = Flows(port, buffer_bytes=65536)
    sent = 200
    with sender(port) as send:
        # The first 20 fit, whatever the kernel needs for each; the buffer holds fewer than 60.
        send(v5([v5_record()] * 20, 20 * n) for n in range(sent))
        found = len(flows.take())
        source = flows.source
        below = source.stats.dropped_packets
        assert 400 <= found < 20 * 60
        # Until something follows, only the kernel knows.
        assert below == sent - found // 20
        assert source.stats.absent_packets == 0
        send([v5([v5_record()] * 20, 20 * sent)])
        assert len(flows.take()) == 20
    stats = source.stats
    assert stats.dropped_packets == 20 * sent - found
    assert stats.dropped_packets - stats.absent_packets == below
    assert stats.received_packets == 20 * (sent + 1)
    source.close()


def test_what_is_malformed_keeps_nothing_of_the_record_that_was_there(
    flows: Flows, send: Callable[[Iterable[bytes]], None]
) -> None:
    send([v5([v5_record(ports=(1000, 80))] * 3)])
    assert len(flows.take()) == 3
    send([b"no export"])
    (block,) = blocks(flows.source)
    assert block.count == 1
    assert block.data[:8].any()
    assert not block.data[8:RECORD_BYTES].any()


def test_hostile_datagrams_end_nothing(
    flows: Flows, send: Callable[[Iterable[bytes]], None], tmp_path: Path
) -> None:
    rng = random.Random(17)
    seeds = [
        v5([v5_record()] * 3),
        v9([set_of(0, FIELDS), set_of(300, ROW * 3)]),
        ipfix([set_of(2, FIELDS), set_of(300, ROW)]),
    ]
    datagrams = []
    for number in range(1500):
        datagram = bytearray(rng.choice(seeds))
        if number % 5 < 3:
            for _ in range(rng.randint(1, 6)):
                datagram[rng.randrange(len(datagram))] = rng.randrange(256)
        if number % 5 == 2:
            del datagram[rng.randrange(len(datagram)) :]
        if number % 5 == 3:
            datagram = bytearray(rng.randbytes(rng.randrange(600)))
        datagrams.append(bytes(datagram))
    datagrams.append(v5([v5_record(counts=(1, 2))], 10**9))
    found: list[Record | str] = []
    for begin in range(0, len(datagrams), 100):
        send(datagrams[begin : begin + 100])
        found += flows.take()
    expected, capture = decoded(tmp_path, datagrams)
    for record in (*found, *expected):
        if isinstance(record, dict):
            del record["exporter"]
    assert found == expected
    assert found.count(MALFORMED) > 500
    assert isinstance(found[-1], dict)
    assert flows.source.stats.dropped_packets == capture.stats.dropped_packets


def test_opening_a_source_imports_no_kernel_that_is_stored() -> None:
    """Root opens it: the user who reads from it later could not use what root has stored."""
    code = (
        "import sys\n"
        "from gscope.capture.sources.flows.live_source import LiveFlowSource\n"
        "from gscope.capture.sources.udp.source import UdpSource\n"
        "source = LiveFlowSource(UdpSource('main', f'udp://127.0.0.1:{sys.argv[1]}',"
        " buffer_bytes=1 << 16))\n"
        "source.open()\n"
        "source.close()\n"
        "print([n for n in sys.modules if n.endswith(('flows.exports', 'udp.datagrams'))])\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, str(free_port())], capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"
