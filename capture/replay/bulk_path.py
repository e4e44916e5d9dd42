"""The pump: takes whole blocks of an uncompressed pcap file through the LFTAs in a compiled loop.

Most blocks need no decision: they are read and indexed, none of their packets is late or at the end
of the clock's step, and the output buffers have room for their rows. For such a block, Python costs
as much as a tenth of its packets. So a compiled loop takes blocks while they are of this kind. It
leaves the first other block, and all errors, to the code that handles every block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.replay.bulk_kernel import PacketTimes, ReadPosition, pump_blocks
from gscope.capture.sources.files.file import FileSource, ReadProgress
from gscope.queries.int64 import MAX_TIME_NS

if TYPE_CHECKING:
    from gscope.capture.lfta.runtime import LftaEngine
    from gscope.capture.sources.base import CaptureSource
    from gscope.capture.sources.block import Block

PASS_BYTES = 16 << 20
"""Bytes to read between two checks for a stop: about a hundredth of a second."""


class Pumped(NamedTuple):
    """The result of one run of the pump.

    Attributes:
        block: a block that is read and indexed, and left to the caller; None if the caller has to
            ask the source for the next one.
        position: number of packets of ``block`` that are processed.
        packets: number of packets in the blocks before it, all processed.
        input_bytes: bytes of input read so far.
        latest_ns: greatest time of all packets in the blocks before ``block``.
        worked_ns: time that the LFTAs took.
    """

    block: Block | None
    position: int
    packets: int
    input_bytes: int
    latest_ns: int
    worked_ns: int


class Pump:
    """A loop that takes blocks of ``source`` through the native kernel of ``engine``."""

    def __init__(self, source: FileSource, engine: LftaRuntime) -> None:
        self._source = source
        self._engine = engine
        self._clock = np.zeros(2, np.int64)

    @classmethod
    def between(cls, source: CaptureSource, engine: LftaEngine) -> Pump | None:
        """Return a pump, or None if it does not support a source or an engine of this kind.

        An engine that saves packets takes them from each block, which the compiled loop does not
        hand out. A kernel that numba compiled is called from Python only.
        """
        if not isinstance(source, FileSource) or not isinstance(engine, LftaRuntime):
            return None
        if engine.marks_packets or engine.kernel_entry() is None:
            return None
        return cls(source, engine)

    def run(self, latest_ns: int, skew_ns: int, until_ns: int) -> Pumped | None:
        """Process blocks while their packets are all before ``until_ns`` and none is late.

        Args:
            latest_ns: greatest time of the packets so far; there has been at least one.
            skew_ns: a packet is late if its time is below the greatest before it by more than this.
            until_ns: end of the clock's step.

        Returns:
            What was processed; None if the pump does not support the input of this source.
        """
        raw = self._source.begin_pass()
        if raw is None:
            return None
        block, engine = raw.block, self._engine
        lftas = engine.kernel_entry()
        assert lftas is not None
        state, index = lftas.state, block.index_addresses
        words = pump_blocks(
            lftas.address,
            *lftas.memory,
            state.interface.ctypes.data,
            state.lftas.ctypes.data,
            state.lftas.strides[0],
            max(PASS_BYTES // raw.limit, 1),
            *ReadPosition(descriptor=raw.descriptor, filled=raw.carried, limit=raw.limit),
            *raw.layout,
            *PacketTimes(
                latest_ns=latest_ns,
                skew_ns=min(skew_ns, MAX_TIME_NS),
                until_ns=until_ns,
                bound_ns=engine.bound_ns,
            ),
            block.data.ctypes.data,
            *index[:-1],
            *index,
            self._clock.ctypes.data,
        )
        full, worked_ns, reached_ns, *progress = words
        done = ReadProgress(*progress)
        engine.count(done.packets)
        self._source.end_pass(block, done)
        position = 0 if full < 0 else engine.make_room(full)
        return Pumped(
            block if done.block_packets else None,
            position,
            done.packets,
            block.position,
            reached_ns,
            worked_ns,
        )
