"""A capture file, pipe or standard input as a packet source."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gscope.capture.packet.link_names import link_type_name
from gscope.capture.sources.base import NO_RING, InputState, RingUse, SourceStats
from gscope.capture.sources.block import Block, PacketSums
from gscope.capture.sources.files.compressed import DecompressedBytes, is_compressed
from gscope.capture.sources.files.detect import MAGIC_BYTES, detect_format, header_bytes
from gscope.capture.sources.files.pcap import PcapFormat
from gscope.capture.sources.files.stored import STANDARD_INPUT, ReadingInterrupted, StoredBytes
from gscope.capture.sources.nfcapd.layout import is_flow_file
from gscope.errors import CaptureError, CutCaptureError, NotACaptureError

if TYPE_CHECKING:
    from gscope.capture.sources.files.format import CaptureFormat
    from gscope.capture.sources.files.pcap import PcapLayout
    from gscope.capture.sources.files.stored import ByteStream

DEFAULT_BLOCK_BYTES = 512 * 1024
"""Of sizes from 64 KiB to 4 MiB, 512 KiB and 1 MiB were fastest without read-ahead, and 1 MiB with
it: the bytes are still in the second-level cache when they are indexed, and the cost of a block in
Python is spread over 5,000 packets."""

_LEAST_BLOCK_BYTES = 4096
_LEAST_RECORD_BYTES = 16
"""Smallest record of a file: index arrays for blocks of such records never fill before the data
does."""


_PASSED_BLOCKS = 4
"""Smallest number of blocks in a file for which the compiled loop is worth loading."""


class RawInput(NamedTuple):
    """An uncompressed pcap file that a compiled loop reads itself.

    Attributes:
        block: block to read into; its data begin with ``carried`` bytes that were read before.
        descriptor: file descriptor to read from.
        carried: bytes of the next record that were read before.
        limit: bytes of the block's data that may be filled.
        layout: layout of the records.
    """

    block: Block
    descriptor: int
    carried: int
    limit: int
    layout: PcapLayout


class ReadProgress(NamedTuple):
    """How far a compiled loop read: blocks that it finished, and the last, which it did not.

    Attributes:
        read_bytes: bytes read in all.
        used_bytes: bytes of the input in the finished blocks.
        packets: packets in the finished blocks.
        wire_bytes: bytes on the wire of these packets.
        filled: bytes in the last block.
        used: bytes at the beginning of the last block that its packets take.
        block_packets: packets indexed in the last block; 0 if it has not been indexed.
        block_wire_bytes: bytes on the wire of these packets.
        least_ns: least of their times.
        greatest_ns: greatest of their times.
    """

    read_bytes: int
    used_bytes: int
    packets: int
    wire_bytes: int
    filled: int
    used: int
    block_packets: int
    block_wire_bytes: int
    least_ns: int
    greatest_ns: int


class FileSource:
    """The packets of one capture, whatever its format and compression; see ``BlockSource``.

    Args:
        path: the file, ``-`` for standard input.
        name: name for messages; by default the path.
        block_bytes: bytes of input that a block has room for; small files get smaller blocks. A
            record that is larger makes the block grow.
        no_flow_records: why a file of nfcapd, whose packets are flow records, is refused: the end
            of a sentence; "" if it is read.
    """

    def __init__(
        self,
        path: str,
        *,
        name: str | None = None,
        block_bytes: int = DEFAULT_BLOCK_BYTES,
        no_flow_records: str = "",
    ) -> None:
        self.path = path
        self.name = name or ("standard input" if path == STANDARD_INPUT else path)
        self.device = self.name
        self.stats = SourceStats()
        self.size_bytes: int | None = None
        self.damage: list[str] = []
        self._no_flow_records = no_flow_records
        self.block_bytes = max(block_bytes, _LEAST_RECORD_BYTES)
        self._where = self.name
        self._stored: StoredBytes | None = None
        self._stream: ByteStream | None = None
        self._format: CaptureFormat | None = None
        self._block: Block | None = None
        # Bytes that were read but not used: the beginning of the next record, at ``_base`` of the
        # input.
        self._carry = b""
        self._base = 0
        self._ending: list[str] = []
        self._is_interrupted = False
        self._is_ended = False

    def open(self) -> None:
        """See ``PacketSource``."""
        stored = StoredBytes(self.path)
        stream: ByteStream = stored
        self._stored = self._stream = stored
        if self._is_interrupted:
            stored.interrupt()
        self.size_bytes = stored.size_bytes
        try:
            head = _read_head(stored, b"", MAGIC_BYTES)
            if is_compressed(head):
                stream = DecompressedBytes(stored, head)
                self._stream = stream
                self._where = f"{self.name} (unpacked)"
                head = b""
            elif self.size_bytes is not None:
                self.block_bytes = min(self.block_bytes, max(self.size_bytes, _LEAST_BLOCK_BYTES))
            head = _read_head(stream, head, MAGIC_BYTES)
            head = _read_head(stream, head, header_bytes(head))
            if stored.damage and len(head) < header_bytes(head[:MAGIC_BYTES]):
                message = f"{self.name} cannot be read: {stored.damage[0]}"
                raise CaptureError(message) if stream is stored else CutCaptureError(message)
            self._format, self._base = detect_format(head, self.name)
            if is_flow_file(head[:MAGIC_BYTES]):
                if self._no_flow_records:
                    message = f"{self.name} is a file of nfcapd, {self._no_flow_records}"
                    raise NotACaptureError(message)
                from gscope.capture.sources.nfcapd.records import ENTRY_BYTES
                from gscope.capture.sources.nfcapd.stream import FlowRecordStream

                self.block_bytes = max(self.block_bytes, ENTRY_BYTES)
                self._stream = FlowRecordStream(stream, head)
        except BaseException:
            self.close()
            raise
        self._carry = head[self._base :]

    @property
    def is_open(self) -> bool:
        """Whether more packets may follow."""
        return self._stream is not None

    def new_block(self) -> Block:
        """See ``BlockSource``."""
        return Block.allocate(self.block_bytes, self.block_bytes // _LEAST_RECORD_BYTES + 1)

    def next_block(self) -> Block | None:
        """See ``CaptureSource``."""
        if self._stream is None:
            self._is_ended = True
            return None
        if self._block is None:
            self._block = self.new_block()
        return self._block if self.fill(self._block) else None

    def is_ready(self, timeout_s: float) -> bool:  # noqa: ARG002  # does not read ahead
        """See ``CaptureSource``."""
        return True

    def state(self) -> InputState:
        """See ``PacketSource``."""
        return InputState.ENDED if self._is_ended else InputState.READING

    def ring_use(self) -> RingUse:
        """See ``PacketSource``."""
        return NO_RING

    def fill(self, block: Block) -> bool:
        """See ``BlockSource``."""
        self._is_ended = not self._fill_next(block)
        return not self._is_ended

    def _fill_next(self, block: Block) -> bool:
        stream, capture_format = self._stream, self._format
        block.fill_in(0)
        if stream is None or capture_format is None:
            return False
        try:
            self._fill(block, stream, capture_format)
        except ReadingInterrupted:
            block.fill_in(0)
            return False
        block.position = stream.position
        if not block.count:
            self._ending = self._ending_of(capture_format)
            self.close()
            return False
        self.stats.received_packets += block.count
        self.stats.received_bytes += block.wire_bytes
        for linktype in capture_format.unread_links:
            self._count_unread(linktype, int((block.linktype[: block.count] == linktype).sum()))
        return True

    def _count_unread(self, linktype: int, packets: int) -> None:
        if packets:
            counts, name = self.stats.unread_links, link_type_name(linktype)
            counts[name] = counts.get(name, 0) + packets

    def begin_pass(self) -> RawInput | None:
        """Let a compiled loop read the file until ``end_pass``.

        Return None if this input does not allow it.

        The loop uses the block that was handed out last.
        """
        stored, capture_format = self._stored, self._format
        if (
            stored is None
            or self._stream is not stored
            or not isinstance(capture_format, PcapFormat)
        ):
            return None
        descriptor, layout = stored.descriptor, capture_format.usual_layout
        is_large = (self.size_bytes or 0) >= _PASSED_BLOCKS * self.block_bytes
        if descriptor is None or layout is None or self._block is None or not is_large:
            return None
        carried = len(self._carry)
        limit = max(self.block_bytes, carried)
        self._block.fill_in(0)
        self._block.ensure_capacity(limit, 0)
        self._block.view()[:carried] = self._carry
        return RawInput(self._block, descriptor, carried, limit, layout)

    def end_pass(self, block: Block, progress: ReadProgress) -> None:
        """Continue after what a compiled loop has read into ``block`` since ``begin_pass``."""
        assert self._stored is not None
        self._stored.position += progress.read_bytes
        self._carry = bytes(block.view()[progress.used : progress.filled])
        self._base += progress.used_bytes + progress.used
        sums = PacketSums(progress.block_wire_bytes, progress.least_ns, progress.greatest_ns)
        block.fill_in(progress.block_packets, sums)
        block.position = self._stored.position
        self.stats.received_packets += progress.packets + progress.block_packets
        self.stats.received_bytes += progress.wire_bytes
        if progress.block_packets:
            self.stats.received_bytes += progress.block_wire_bytes
        for linktype in self._format.unread_links if self._format is not None else ():
            self._count_unread(linktype, progress.packets + progress.block_packets)

    def interrupt(self) -> None:
        """See ``BlockSource``."""
        # In this order: ``open`` in another thread sets ``_stored`` and then looks at the flag.
        self._is_interrupted = True
        if self._stored is not None:
            self._stored.interrupt()

    def close(self) -> None:
        """See ``PacketSource``."""
        if self._stream is not None:
            self._stream.close()
        if self._stream is not None and self._format is not None:
            causes = [f"{self.name}: {sentence}" for sentence in self._stream.damage]
            counts = [f"{self.name}: {sentence}" for sentence in self._format.findings()]
            self.damage += causes + self._ending + counts
        self._stream = self._format = self._block = None
        self._ending = []
        self._carry = b""

    def _fill(self, block: Block, stream: ByteStream, capture_format: CaptureFormat) -> None:
        """Read and index until there is a packet, the input ends, or the format is broken."""
        filled = len(self._carry)
        limit = max(self.block_bytes, filled)
        block.ensure_capacity(limit, 0)
        view = block.view()
        view[:filled] = self._carry
        while True:
            got = stream.readinto(view[filled:limit])
            filled += got
            used = capture_format.index(block, filled, self._base)
            if block.count or capture_format.broken or (not got and filled < limit):
                break
            # No whole record yet: make room after the part that was read. Doubling, so that memory
            # grows with what was read and not with what a damaged header claims; and not beyond the
            # record, so that little has to be carried over.
            block.data[: filled - used] = block.data[used:filled]
            self._base += used
            filled -= used
            if filled == limit:
                limit = min(2 * limit, max(capture_format.needed_bytes, limit + 1))
                block.ensure_capacity(limit, filled)
                view = block.view()
        self._carry = bytes(view[used:filled])
        self._base += used

    def _ending_of(self, capture_format: CaptureFormat) -> list[str]:
        """Return what follows the last packet, as a list of at most one sentence."""
        if capture_format.broken:
            return [f"{self._where}: {capture_format.broken}"]
        if not self._carry:
            return []
        return [
            (
                f"{self._where}: the last record is truncated after {len(self._carry)} of "
                f"{capture_format.needed_bytes} bytes, at byte {self._base}"
            )
        ]


def _read_head(stream: ByteStream, head: bytes, size: int) -> bytes:
    """Return ``head`` and the bytes of ``stream`` that follow it, up to ``size`` bytes in all."""
    buffer = bytearray(size)
    while len(head) < size:
        got = stream.readinto(memoryview(buffer)[: size - len(head)])
        if not got:
            break
        head += bytes(buffer[:got])
    return head
