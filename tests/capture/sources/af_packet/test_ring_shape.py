from __future__ import annotations

import pytest

from gscope.capture.sources.af_packet.ring import DEFAULT_RING_BYTES, RETIRE_MS, RingShape
from gscope.errors import UsageError

MIB = 1 << 20


@pytest.mark.parametrize(
    ("ring_bytes", "block_bytes", "blocks"),
    [
        (2 * MIB, MIB // 4, 8),
        (DEFAULT_RING_BYTES, MIB // 4, 256),
        (DEFAULT_RING_BYTES + MIB - 1, MIB // 4, 259),
        (128 * MIB, MIB // 2, 256),
        (256 * MIB, MIB, 256),
        (1024 * MIB, MIB, 1024),
    ],
)
def test_a_ring_has_many_blocks_before_it_has_large_ones(
    ring_bytes: int, block_bytes: int, blocks: int
) -> None:
    assert RingShape.of(ring_bytes) == RingShape(block_bytes, blocks)


def test_a_reader_of_the_default_ring_may_stand_still_for_ten_seconds() -> None:
    assert RingShape.of(DEFAULT_RING_BYTES).blocks * RETIRE_MS >= 10_000


@pytest.mark.parametrize("ring_bytes", [0, 2 * MIB - 1, 1 << 32])
def test_sizes_out_of_range_are_rejected(ring_bytes: int) -> None:
    with pytest.raises(UsageError, match="expected 2M to less than 4G"):
        RingShape.of(ring_bytes)
