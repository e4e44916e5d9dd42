"""The pump: whole blocks of an uncompressed pcap file through the LFTAs, without Python between them.

Most blocks are all the same: read, indexed, none of their packets late or at the end of the clock's step, and their
rows have room. For those, what Python does costs as much as the packets of a tenth of the block. So a compiled loop takes blocks as
long as they are of this kind, and leaves the first that is not, and all errors, to those who take every block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gscope.capture.kernels.jit import entry_of
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.replay.bulk_kernel import PacketTimes, ReadPosition, pump_blocks
from gscope.capture.sources.files.file import FileSource
from gscope.queries.int64 import MAX_TIME_NS

if TYPE_CHECKING:
    from gscope.capture.lfta.runtime import LftaEngine
    from gscope.capture.sources.base import CaptureSource
    from gscope.capture.sources.block import Block

PASS_BYTES = 16 << 20
"""Read between two looks at whether the replay was stopped: a hundredth of a second."""


class Pumped(NamedTuple):
    """What the pump did.

    Attributes:
        block: read and indexed, and left to the caller; None if the source is to be asked for the next one.
        position: packets of it that are processed.
        packets: of the blocks before it, all processed.
        input_bytes: read by now.
        latest_ns: greatest time of these, and of all before them.
        worked_ns: that the LFTAs took.
    """

    block: Block | None
    position: int
    packets: int
    input_bytes: int
    latest_ns: int
    worked_ns: int


class Pump:
    """Takes blocks of ``source`` through the LFTAs of ``engine``."""

    def __init__(self, source: FileSource, engine: LftaRuntime) -> None:
        self._source = source
        self._engine = engine
        self._entry = 0
        self._clock = np.zeros(2, np.int64)

    @classmethod
    def between(cls, source: CaptureSource, engine: LftaEngine) -> Pump | None:
        """A pump, if the two are of the kinds that it knows."""
        if isinstance(source, FileSource) and isinstance(engine, LftaRuntime):
            return cls(source, engine)
        return None

    def run(self, latest_ns: int, skew_ns: int, until_ns: int) -> Pumped | None:
        """Process blocks whose packets are all before ``until_ns`` and none late; None if this source has none such.

        Args:
            latest_ns: greatest time of the packets so far, of which there was one.
            skew_ns: a packet is late if its time is lower than the greatest before it by more than this.
            until_ns: where the clock's step ends.
        """
        raw = self._source.begin_pass()
        if raw is None:
            return None
        block, engine = raw.block, self._engine
        arrays = (
            block.data,
            block.offset,
            block.caplen,
            block.wirelen,
            block.time_ns,
            block.linktype,
        )
        last_arguments = engine.kernel_arguments
        if not self._entry:
            # All blocks of a source have arrays of the same types.
            self._entry = entry_of(engine.kernel_run, *arrays, 0, 0, 0, 0, *last_arguments)
        full, worked_ns, latest_ns, done = pump_blocks(
            self._entry,
            max(PASS_BYTES // raw.limit, 1),
            ReadPosition(raw.descriptor, raw.carried, raw.limit),
            raw.layout,
            PacketTimes(latest_ns, min(skew_ns, MAX_TIME_NS), until_ns, engine.bound_ns),
            arrays,
            last_arguments,
            self._clock,
        )
        self._source.end_pass(block, done)
        position = 0 if full < 0 else engine.make_room(full)
        return Pumped(
            block if done.block_packets else None,
            position,
            done.packets,
            block.position,
            latest_ns,
            worked_ns,
        )
