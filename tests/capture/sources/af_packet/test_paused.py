"""A source opened paused lets nothing in and counts nothing until it is started."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.af_packet.network import DEVICE, receive, send

from gscope.capture.sources.af_packet.source import AfPacketSource

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.live

FRAMES = [bytes(12) + b"\x08\x00" + bytes([number]) * 50 for number in range(8)]


@pytest.fixture
def source(network: None) -> Iterator[AfPacketSource]:
    made = AfPacketSource("main", DEVICE, ring_bytes=4 << 20)
    made.open()
    yield made
    made.close()


def test_packets_before_the_start_are_not_there(source: AfPacketSource) -> None:
    send(FRAMES[:5])
    assert source.next_block(0.1) is None
    source.start()
    send(FRAMES[5:])
    assert receive(source, 3) == FRAMES[5:]
    assert (source.stats.received_packets, source.stats.dropped_packets) == (3, 0)
