from __future__ import annotations

from gscope.capture.sources.block import PADDING_BYTES, Block


def test_has_padding_behind_its_capacity() -> None:
    block = Block.allocate(100, 7)
    assert block.capacity_bytes == 100
    assert block.data.size == 100 + PADDING_BYTES
    assert block.offset.size == block.time_ns.size == 7
    assert block.count == 0


def test_growing_keeps_what_is_asked_for() -> None:
    block = Block.allocate(4, 1)
    block.view()[:4] = b"abcd"
    block.ensure_capacity(3, 4)
    assert block.capacity_bytes == 4
    block.ensure_capacity(10, 2)
    assert block.capacity_bytes == 10
    assert block.data[:2].tobytes() == b"ab"
