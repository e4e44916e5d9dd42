"""The flow records of a file as a stream of entries, and the format that indexes these.

The stream reads and decompresses the file block by block, and writes entries of a fixed size
straight into the block of packets that is being filled. So all that is made for captures works for
these files: several in sequence, pipes, files compressed as a whole, reading ahead, and the walk
that finds the skew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import address_of, ld64
from gscope.capture.packet.flow.layout import LINKTYPE_FLOW, RECORD_BYTES
from gscope.capture.sources.nfcapd.layout import (
    BLOCK_HEADER_BYTES,
    MAX_BLOCK_BYTES,
    PLAIN,
    RECORD_BLOCK,
    block_header_of,
    header_of,
    sequence_failures_in,
)
from gscope.capture.sources.nfcapd.records import ENTRY_BYTES, decode_records, new_exporters
from gscope.capture.sources.nfcapd.unpack import Unpacker
from gscope.queries.int64 import MAX_TIME_NS

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from gscope.capture.sources.block import Block, IndexArrays
    from gscope.capture.sources.nfcapd.layout import BlockHeader

_SECOND_NS = 1_000_000_000
_MAX_S = MAX_TIME_NS // _SECOND_NS
_FIRST_ROOM = 1 << 20
"""Bytes of a block for which there is room at first: nfdump writes blocks of about 1 MiB."""
_MAX_APPENDIX_BLOCKS = 16

_NOTHING = np.empty(0, np.uint8)
_UNUSABLE = np.zeros(1, np.uint8)
"""Stands for a block that cannot be used: less than a record, so that it counts as damaged."""


class StoredFile(Protocol):
    """The bytes of the file, see ``ByteStream`` in ``files/stored.py``."""

    @property
    def position(self) -> int:
        """Bytes consumed so far."""

    @property
    def damage(self) -> list[str]:
        """Sentences on why the bytes ended too early."""

    def readinto(self, buffer: memoryview) -> int:
        """Fill the beginning of ``buffer`` and return the number of bytes."""

    def interrupt(self) -> None:
        """Wake a ``readinto`` that waits for input in another thread."""

    def close(self) -> None:
        """Release everything."""


class FlowRecordStream:
    """The flow records of a file as entries; see ``ByteStream``.

    A damaged block or record becomes an entry for something undecodable, and ``damage`` describes
    it.

    Args:
        stored: the bytes of the file behind its header.
        head: the header, without a ``file_fault``.
    """

    def __init__(self, stored: StoredFile, head: bytes) -> None:
        self._stored = stored
        self._header = header_of(head)
        self._unpacker = Unpacker(self._header.compression)
        self._exporters = new_exporters()
        self._latest_ns = min(max(self._header.created_s, 0), _MAX_S) * _SECOND_NS
        self._content = self._block = _NOTHING
        self._used = 0
        # Bytes of the file that were read, and blocks of which the header was.
        self._position = len(head)
        self._blocks = 0
        self._damaged_blocks = 0
        self._is_ended = False
        self._findings: list[str] = []

    @property
    def position(self) -> int:
        """Bytes of the stored input consumed so far."""
        return self._stored.position

    @property
    def damage(self) -> list[str]:
        """See ``ByteStream``."""
        found = [*self._stored.damage, *self._findings]
        if self._damaged_blocks:
            found.append(
                f"{self._damaged_blocks} of {self._blocks} blocks are damaged; the rest of each is"
                " ignored"
            )
        return found

    def readinto(self, buffer: memoryview) -> int:
        """See ``ByteStream``: write whole entries; ``buffer`` has room for at least one."""
        out = np.frombuffer(buffer, np.uint8)
        while True:
            while self._used < self._block.size:
                written = self._decode(out)
                if written:
                    return written
            if self._is_ended:
                return 0
            self._block, self._used = self._next_block(), 0

    def interrupt(self) -> None:
        """See ``ByteStream``."""
        self._stored.interrupt()

    def close(self) -> None:
        """See ``ByteStream``."""
        self._stored.close()
        self._block = self._content = _NOTHING

    def _decode(self, out: NDArray[np.uint8]) -> int:
        """Decode records of the block into ``out``; return the bytes written."""
        state = self._block, self._used, out, self._exporters, self._latest_ns
        self._used, written, self._latest_ns = decode_records(*state)
        if self._used < 0:
            self._damaged_blocks += 1
            self._used = self._block.size
        return written

    def _next_block(self) -> NDArray[np.uint8]:
        """Return the content of the next block; ``_UNUSABLE`` for one that is damaged."""
        header = self._header
        if header.is_complete and self._blocks == header.blocks:
            self._end()
            self._read_totals()
            return _NOTHING
        head = self._read(BLOCK_HEADER_BYTES)
        if head.size < BLOCK_HEADER_BYTES:
            self._end_of_file(head.size)
            return _UNUSABLE if head.size else _NOTHING
        self._blocks += 1
        block = block_header_of(head.tobytes())
        if block.stored_bytes > MAX_BLOCK_BYTES:
            self._end(
                f"the block at byte {self._position - BLOCK_HEADER_BYTES} claims"
                f" {block.stored_bytes} bytes; the rest is ignored"
            )
            return _UNUSABLE
        content = self._read(block.stored_bytes)
        is_cut = content.size < block.stored_bytes
        if is_cut:
            self._end_of_file(BLOCK_HEADER_BYTES + content.size)
        if block.kind != RECORD_BLOCK:
            return _NOTHING
        if is_cut and not self._is_plain(block):
            return _UNUSABLE
        return self._unpacked(block, content)

    def _is_plain(self, block: BlockHeader) -> bool:
        return block.is_plain or self._header.compression == PLAIN

    def _unpacked(self, block: BlockHeader, content: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if self._is_plain(block):
            return content
        made = self._unpacker.unpack(content)
        return _UNUSABLE if made is None else made

    def _read(self, size: int) -> NDArray[np.uint8]:
        """Return the next ``size`` bytes of the file, fewer at its end; valid until the next call.

        Memory grows with what is read and not with what a damaged header claims.
        """
        filled = 0
        while filled < size:
            if filled == self._content.size:
                grown = np.empty(min(size, max(2 * filled, _FIRST_ROOM)), np.uint8)
                grown[:filled] = self._content[:filled]
                self._content = grown
            room = min(size, self._content.size)
            view = memoryview(cast("Buffer", self._content))
            got = self._stored.readinto(view[filled:room])
            if not got:
                break
            filled += got
        self._position += filled
        return self._content[:filled]

    def _end(self, finding: str = "") -> None:
        self._is_ended = True
        if finding:
            self._findings.append(finding)

    def _end_of_file(self, rest: int) -> None:
        """End at the end of the file; its last ``rest`` bytes belong to a block that is cut."""
        whole = self._blocks - (rest >= BLOCK_HEADER_BYTES)
        if self._stored.damage:
            self._end()
        elif self._header.is_complete:
            self._end(
                f"truncated at byte {self._position}, after {whole} of {self._header.blocks} blocks"
            )
        else:
            cut = f"; the last {rest} bytes belong to a block that is truncated" if rest else ""
            self._end(
                f"not complete: its writer has not closed it after {whole} blocks, which are"
                f" read{cut}"
            )

    def _read_totals(self) -> None:
        """Read the appendix, if it is where the header says, for its sequence failures."""
        if self._position != self._header.appendix:
            return
        for _ in range(min(self._header.appendix_blocks, _MAX_APPENDIX_BLOCKS)):
            head = self._read(BLOCK_HEADER_BYTES)
            if head.size < BLOCK_HEADER_BYTES:
                return
            block = block_header_of(head.tobytes())
            if block.stored_bytes > MAX_BLOCK_BYTES:
                return
            content = self._unpacked(block, self._read(block.stored_bytes))
            if failures := sequence_failures_in(content.tobytes()):
                self._findings.append(
                    f"sequence failures that the collector noted: {failures}; how many records are"
                    " missing is not in the file"
                )


class FlowRecordFormat:
    """The entries of a ``FlowRecordStream`` as packets; see ``CaptureFormat``."""

    def __init__(self) -> None:
        self.needed_bytes = ENTRY_BYTES
        self.broken = ""
        self.unread_links: set[int] = set()

    def index(self, block: Block, end: int, base: int) -> int:  # noqa: ARG002  # has no messages
        """See ``CaptureFormat``."""
        count = min(end // ENTRY_BYTES, block.offset.size)
        _index_entries(block.data, block.index_arrays, count)
        block.fill_in(count)
        return count * ENTRY_BYTES

    def findings(self) -> list[str]:
        """See ``CaptureFormat``; those of the file are in the stream's ``damage``."""
        return []


@kernel
def _index_entries(data: NDArray[np.uint8], index: IndexArrays, count: int) -> None:
    base = address_of(data)
    offset, caplen, wirelen, time_ns, linktype = index
    for number in range(count):
        at = base + number * ENTRY_BYTES
        offset[number] = number * ENTRY_BYTES + ENTRY_BYTES - RECORD_BYTES
        caplen[number] = RECORD_BYTES
        wirelen[number] = ld64(at + 8)
        time_ns[number] = ld64(at)
        linktype[number] = LINKTYPE_FLOW
