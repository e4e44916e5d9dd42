"""The saver of one interface: takes the packets that its LFTAs marked in each block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.saving.packet_file import Origin, SaveBuffer
from gscope.capture.saving.pcapng_blocks import DONE, NEW_LINK, Target, append_marked, clear_marks
from gscope.queries.int64 import MIN_TIME_NS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gscope.capture.lfta.columns import ColumnBatch
    from gscope.capture.saving.packet_file import PacketFile
    from gscope.capture.sources.block import Block

_NO_BUFFER = SaveBuffer(np.empty(0, np.uint8), 0)


class PacketSaver:
    """Copies marked packets of one interface into buffers of a file; see ``MarkedPackets``.

    For use by one thread.

    Args:
        file: where they are saved.
        interface: name of the interface.

    Attributes:
        needs_rows: see ``MarkedPackets``.
    """

    def __init__(self, file: PacketFile, interface: str) -> None:
        self._file = file
        self._interface = interface
        self._marks = np.zeros(0, np.int64)
        self._address = 0
        self._links = np.empty((0, 2), np.int64)
        self._buffer = _NO_BUFFER
        self._used = 0
        self._packets = 0
        self._latest_ns = MIN_TIME_NS
        self._in_group: dict[str, list[NDArray[np.bool_]]] = {name: [] for name in file.keys}
        self.needs_rows = bool(file.keys)
        file.add_saver()

    def begin(self, packets: int) -> int:
        """See ``MarkedPackets``."""
        if self._marks.size < packets or not self._address:
            self._marks = np.zeros(max(packets, 2 * self._marks.size, 1), np.int64)
            self._address = self._marks.ctypes.data
        return self._address

    def take_rows(self, lfta: str, batch: ColumnBatch) -> None:
        """Note which rows of an LFTA, one for each packet that it marks, are in a saved group."""
        if lfta in self._in_group:
            found = self._file.keys[lfta].contain(batch.to_arrow(), self._interface)
            self._in_group[lfta].append(found)
        batch.release()

    def _leave_out_other_groups(self, first: int, stop: int) -> None:
        """Clear the marks of packets whose groups are not saved."""
        for lfta, found in self._in_group.items():
            bit = 1 << self._file.marks[lfta]
            marked = first + np.flatnonzero(self._marks[first:stop] & bit)
            others = ~np.concatenate([np.empty(0, np.bool_), *found])
            found.clear()
            self._marks[marked[others]] &= ~bit

    def save(self, block: Block, first: int, stop: int) -> None:
        """See ``MarkedPackets``."""
        self._leave_out_other_groups(first, stop)
        if first < stop:
            latest_ns = int(block.time_ns[first:stop].max())
            self._latest_ns = max(self._latest_ns, latest_ns)
        while True:
            done = append_marked(
                block.data,
                block.index_arrays,
                (first, stop),
                self._marks,
                self._links,
                self._file.comments,
                Target(self._buffer.data, self._used, self._buffer.limit),
            )
            first, self._used = done.position, done.used
            self._packets += done.packets
            if done.status == DONE:
                return
            if done.status == NEW_LINK:
                number = self._file.interface(self._interface, done.wanted)
                self._links = np.vstack([self._links, [(done.wanted, number)]])
                continue
            self._hand_over()
            buffer = self._file.take(done.wanted)
            if buffer is None:
                self._file.leave_out(clear_marks(self._marks, first, stop))
                return
            self._buffer = buffer

    def flush(self) -> None:
        """See ``MarkedPackets``; while the disk is slow, buffers are filled first."""
        if self._used and self._file.has_room:
            self._hand_over()

    def finish(self) -> None:
        """See ``MarkedPackets``."""
        self._hand_over()

    def _hand_over(self) -> None:
        if self._buffer is not _NO_BUFFER:
            origin = Origin(self._interface, self._latest_ns)
            self._file.give(self._buffer, self._used, self._packets, origin)
        self._buffer, self._used, self._packets = _NO_BUFFER, 0, 0
