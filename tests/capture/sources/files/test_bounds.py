"""The compiled walks never touch a byte or an entry outside of what they were given."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capture.sources.files.capture_bytes import (
    enhanced,
    interface,
    obsolete,
    pcap_header,
    pcap_record,
    section,
    simple,
)

from gscope.capture.sources.block import Block
from gscope.capture.sources.files.pcap import PcapFormat
from gscope.capture.sources.files.pcapng import PcapngFormat

if TYPE_CHECKING:
    from gscope.capture.sources.files.format import CaptureFormat

RECORDS = st.sampled_from([pcap_record(b""), pcap_record(b"abc"), pcap_record(bytes(30))])
BLOCKS = st.sampled_from(
    [section(), interface(), enhanced(b"abc"), obsolete(b"abcd"), simple(b"abcde")]
)


def _index_exactly(capture_format: CaptureFormat, data: bytes, room: int) -> None:
    """Index with arrays that end where the data and the room do, without padding."""
    block = Block.allocate(0, room)
    block.data = np.frombuffer(data, np.uint8).copy()
    stop = capture_format.index(block, len(data), 0)
    assert 0 <= stop <= len(data)
    assert 0 <= block.count <= room
    for i in range(block.count):
        assert 0 <= block.offset[i] <= block.offset[i] + block.caplen[i] <= stop


def _mutated(data: bytes, draw: st.DataObject) -> bytes:
    changed = bytearray(data[: draw.draw(st.integers(0, len(data)))])
    for _ in range(draw.draw(st.integers(0, 4)) if changed else 0):
        at = draw.draw(st.integers(0, len(changed) - 1))
        changed[at] = draw.draw(st.integers(0, 255))
    return bytes(changed)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.one_of(RECORDS, st.binary(max_size=20)), max_size=12), st.data())
def test_pcap(parts: list[bytes], draw: st.DataObject) -> None:
    order = draw.draw(st.sampled_from("<>"))
    magic = draw.draw(st.sampled_from([0xA1B2C3D4, 0xA1B2CD34]))
    data = _mutated(b"".join(parts), draw)
    room = draw.draw(st.integers(0, 12))
    _index_exactly(PcapFormat(pcap_header(order, magic)), data, room)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.one_of(BLOCKS, st.binary(max_size=20)), max_size=12), st.data())
def test_pcapng(parts: list[bytes], draw: st.DataObject) -> None:
    data = _mutated(section() + interface() + b"".join(parts), draw)
    _index_exactly(PcapngFormat(), data, draw.draw(st.integers(0, 12)))


@pytest.mark.slow
def test_with_every_access_checked() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "test_pcap", __file__],
        cwd=Path(__file__).parents[4],
        env=os.environ | {"GSCOPE_BOUNDSCHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "2 passed" in run.stdout
