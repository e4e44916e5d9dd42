"""pcapng files: sections, interfaces, and enhanced, simple and obsolete packet blocks.

A kernel (``pcapng_index.py``) walks over packet blocks; the few section headers and interface
descriptions are read here. Layout: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.packet.link_names import READ_LINK_TYPES
from gscope.capture.sources.files.format import MAX_RECORD_BYTES
from gscope.capture.sources.files.pcapng_index import (
    BROKEN,
    CLAMPED_TIMES,
    INTERFACE,
    INTERFACE_COLUMNS,
    MALFORMED,
    NEEDED,
    NO_TIME,
    SECTION,
    STATE_SIZE,
    TOO_LARGE,
    UNKNOWN_INTERFACE,
    index_pcapng,
)
from gscope.capture.sources.files.pcapng_time import time_scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gscope.capture.sources.block import Block

MAGIC = b"\x0a\x0d\x0d\x0a"
HEADER_BYTES = 28
"""The smallest section header block."""

_BYTE_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_MAX_INTERFACES = 65536
"""Interfaces in a section: obsolete packet blocks cannot number more. Bounds memory."""
_MAX_SECTIONS = 65536
"""Sections in a file: headers are read one by one in Python, and concatenated files have few."""
_MAX_OPTIONS_BYTES = 2**20
"""Bytes of an interface's options that are read; later options are ignored."""

_OPTION_TSRESOL, _OPTION_TSOFFSET = 9, 14

# What each counter of the kernel counts.
_FINDINGS = {
    UNKNOWN_INTERFACE: "packets of an interface that no block describes, ignored",
    MALFORMED: "packet blocks too short for the length they claim, ignored",
    TOO_LARGE: "packets of more captured bytes than any capture tool records (262,144), ignored",
    CLAMPED_TIMES: "packets with a time after the year 2262, set to its end",
    NO_TIME: "packets without a time, set to that of the previous packet",
}


class PcapngFormat:
    """Blocks of a pcapng file; see ``CaptureFormat``."""

    def __init__(self) -> None:
        self.needed_bytes = HEADER_BYTES
        self.broken = ""
        self.unread_links: set[int] = set()
        self._order = "<"
        self._interfaces: NDArray[np.int64] = np.zeros((0, INTERFACE_COLUMNS), np.int64)
        # ``_interfaces`` is the used part of it, so that a new interface rarely copies the others.
        self._table = np.zeros((8, INTERFACE_COLUMNS), np.int64)
        self._section_count = 0
        self._cut_options = 0
        self._state: NDArray[np.int64] = np.zeros(STATE_SIZE, np.int64)

    def index(self, block: Block, end: int, base: int) -> int:
        """See ``CaptureFormat``."""
        block.count = 0
        position = 0
        while not self.broken:
            block.count, position, event = index_pcapng(
                block.data.ctypes.data,
                position,
                end,
                self._order == ">",
                self._interfaces.ctypes.data,
                len(self._interfaces),
                self._state.ctypes.data,
                block.count,
                *block.index_addresses,
            )
            at = base + position
            if event == SECTION:
                length = self._begin_section(block.view()[position:end], at)
            elif event == INTERFACE:
                length = self._describe_interface(block.view()[position:end], at)
            else:
                self.needed_bytes = int(self._state[NEEDED])
                if event == BROKEN:
                    self.broken = f"the block at byte {at} has invalid lengths; {_NOTHING}"
                break
            if not length:
                break
            position += length
        return int(position)

    def findings(self) -> list[str]:
        """See ``CaptureFormat``."""
        counts = [(int(self._state[counter]), text) for counter, text in _FINDINGS.items()]
        counts.append((self._cut_options, "interface descriptions with truncated options"))
        return [f"{text}: {count}" for count, text in counts if count]

    def _begin_section(self, data: memoryview, at: int) -> int:
        """Read the section header at the beginning of ``data``.

        Return its length, 0 if it is incomplete or broken.
        """
        self.needed_bytes = HEADER_BYTES
        if len(data) < HEADER_BYTES:
            return 0
        self.broken = section_fault(bytes(data[:HEADER_BYTES]))
        if self.broken:
            self.broken = f"the section header at byte {at} {self.broken}; {_NOTHING}"
            return 0
        order = _BYTE_ORDERS[bytes(data[8:12])]
        (self.needed_bytes,) = struct.unpack_from(order + "I", data, 4)
        if len(data) < self.needed_bytes:
            return 0
        if data[4:8] != data[self.needed_bytes - 4 : self.needed_bytes]:
            self.broken = f"the section header at byte {at} has inconsistent lengths; {_NOTHING}"
            return 0
        self._section_count += 1
        if self._section_count > _MAX_SECTIONS:
            self.broken = f"more than {_MAX_SECTIONS} sections before byte {at}; {_NOTHING}"
            return 0
        self._order = order
        self._interfaces = self._table[:0]
        return self.needed_bytes

    def _describe_interface(self, data: memoryview, at: int) -> int:
        """Read the whole interface description at the beginning of ``data``.

        Return its length, 0 if it is broken.
        """
        (length,) = struct.unpack_from(self._order + "I", data, 4)
        count = len(self._interfaces)
        if length < 20 or count == _MAX_INTERFACES:
            self.broken = (
                f"the interface description at byte {at} is too short; {_NOTHING}"
                if length < 20
                else f"more than {_MAX_INTERFACES} interfaces before byte {at}; {_NOTHING}"
            )
            return 0
        linktype, snaplen = struct.unpack_from(self._order + "H2xI", data, 8)
        if linktype not in READ_LINK_TYPES:
            self.unread_links.add(linktype)
        options = self._options(bytes(data[16 : min(length - 4, _MAX_OPTIONS_BYTES)]))
        resolution = options.get(_OPTION_TSRESOL, b"\x06")[0]
        (offset_s,) = struct.unpack(self._order + "q", options.get(_OPTION_TSOFFSET, bytes(8)))
        if count == len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        self._table[count] = (linktype, snaplen, *time_scale(resolution, offset_s))
        self._interfaces = self._table[: count + 1]
        return int(length)

    def _options(self, data: bytes) -> dict[int, bytes]:
        """Return the options that are whole and long enough, by code."""
        options = {}
        lengths = {_OPTION_TSRESOL: 1, _OPTION_TSOFFSET: 8}
        position = 0
        while position + 4 <= len(data):
            code, length = struct.unpack_from(self._order + "2H", data, position)
            if code == 0:
                break
            value = data[position + 4 : position + 4 + length]
            if len(value) < length or length < lengths.get(code, 0):
                self._cut_options += 1
                break
            options[code] = value[: lengths.get(code, length)]
            position += 4 + (length + 3) // 4 * 4
        return options


def section_fault(head: bytes) -> str:
    """Return what is wrong with the section header ``head``, as a predicate; "" if nothing."""
    order = _BYTE_ORDERS.get(head[8:12])
    if order is None:
        return "has no byte order"
    length, major, minor = struct.unpack_from(order + "4xI4x2H", head)
    if not HEADER_BYTES <= length <= MAX_RECORD_BYTES:
        return f"claims {length} bytes"
    if major != 1:
        return f"is of version {major}.{minor}, not 1.x"
    return ""


_NOTHING = "the rest is ignored"
