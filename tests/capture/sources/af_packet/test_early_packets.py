"""Packets that come between the start of a source and its first reader.

They wait, or are discarded together.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.af_packet.live_frames import udp_frame
from tests.capture.sources.af_packet.network import DEVICE, receive, send

from gscope.capture.sources.af_packet.fanout_rings import FanoutSource
from gscope.capture.sources.af_packet.packet_socket import Fanout
from gscope.capture.sources.af_packet.source import AfPacketSource

if TYPE_CHECKING:
    from collections.abc import Iterator

RING_BYTES = 2 << 20
FRAMES = [udp_frame(number, 1000) + bytes(1000) for number in range(8)]
FLOOD = 2 * RING_BYTES // len(FRAMES[0])


@pytest.fixture
def source(network: None) -> Iterator[AfPacketSource]:
    made = AfPacketSource("main", DEVICE, ring_bytes=RING_BYTES)
    made.open()
    yield made
    made.close()


@pytest.fixture
def shared(network: None) -> Iterator[FanoutSource]:
    rings = [AfPacketSource(DEVICE, DEVICE, ring_bytes=RING_BYTES, fanout=Fanout()) for _ in "ab"]
    made = FanoutSource("main", rings)
    made.open()
    yield made
    made.close()


def flood() -> None:
    """Send more packets of one flow than a ring has room for."""
    send(FRAMES[number % 5] for number in range(FLOOD))


@pytest.mark.live
def test_packets_that_the_ring_has_room_for_are_kept_and_counted(source: AfPacketSource) -> None:
    source.start()
    send(FRAMES[:5])
    assert not source.prepare()
    send(FRAMES[5:])
    assert receive(source, 8) == FRAMES
    stats = source.stats
    assert (stats.received_packets, stats.kernel_packets, stats.dropped_packets) == (8, 8, 0)


@pytest.mark.live
def test_a_ring_that_has_overflowed_starts_again_and_counts_nothing(source: AfPacketSource) -> None:
    source.start()
    flood()
    assert source.prepare()
    send(FRAMES[5:])
    assert receive(source, 3) == FRAMES[5:]
    stats = source.stats
    assert (stats.received_packets, stats.kernel_packets, stats.dropped_packets) == (3, 3, 0)


@pytest.mark.live
def test_rings_start_again_together(shared: FanoutSource) -> None:
    shared.start()
    # Of many flows, each ring has some; one flow overflows its own.
    send(udp_frame(number, 2000 + number) for number in range(32))
    flood()
    assert shared.prepare()
    assert all(ring.next_block(0.1) is None for ring in shared.rings)
    send(FRAMES[5:])
    found = [block.count for ring in shared.rings if (block := ring.next_block(0.5)) is not None]
    assert found == [3]
    assert (shared.stats.received_packets, shared.stats.dropped_packets) == (3, 0)


def test_a_device_is_opened_before_numba_is_imported() -> None:
    """The import takes longer than all the rest until packets are let in."""
    code = "import sys, gscope.capture.live.devices; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
