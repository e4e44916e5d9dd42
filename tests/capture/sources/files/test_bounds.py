"""The compiled walks never touch a byte or an entry outside of what they were given."""

from __future__ import annotations

import ctypes
import mmap
import signal
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
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
from tests.support.requirements import ROOT

from gscope.capture.sources.block import Block
from gscope.capture.sources.files.pcap import PcapFormat
from gscope.capture.sources.files.pcapng import PcapngFormat

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gscope.capture.sources.files.format import CaptureFormat

RECORDS = st.sampled_from([pcap_record(b""), pcap_record(b"abc"), pcap_record(bytes(30))])
BLOCKS = st.sampled_from(
    [section(), interface(), enhanced(b"abc"), obsolete(b"abcd"), simple(b"abcde")]
)


_PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)


def _guarded(size: int, kind: type[np.generic]) -> NDArray[Any]:
    """Return an array that ends where memory begins that no process may touch."""
    items = size * np.dtype(kind).itemsize
    pages = -(-items // _PAGE)
    memory = mmap.mmap(-1, (pages + 1) * _PAGE)
    whole = np.frombuffer(memory, np.uint8)
    guard = ctypes.c_void_p(whole.ctypes.data + pages * _PAGE)
    assert _libc.mprotect(guard, ctypes.c_size_t(_PAGE), 0) == 0
    return whole[pages * _PAGE - items : pages * _PAGE].view(kind)


def _index_exactly(capture_format: CaptureFormat, data: bytes, room: int) -> None:
    """Index with arrays that end where the data and the room do, without padding."""
    bytes_of_packets = _guarded(len(data), np.uint8)
    bytes_of_packets[:] = np.frombuffer(data, np.uint8)
    wide, narrow = (partial(_guarded, room, kind) for kind in (np.int64, np.int32))
    block = Block(bytes_of_packets, wide(), narrow(), narrow(), wide(), narrow())
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


_TOUCHES = """
from tests.capture.sources.files.test_bounds import _guarded
import numpy as np
from gscope.capture.sources.block import _total
inside = _guarded(4, np.int32)
inside[:] = 5
print(_total(inside.ctypes.data, 4), flush=True)
_total(inside.ctypes.data, 5)
"""


def test_an_access_outside_ends_the_process() -> None:
    """So the tests above notice one."""
    done = subprocess.run(
        [sys.executable, "-c", _TOUCHES], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("20\n", -signal.SIGSEGV)
