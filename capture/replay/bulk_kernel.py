"""The compiled loop of the pump: reads, indexes and processes blocks of a pcap file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gscope.capture.kernels.jit import kernel_part, native_kernel
from gscope.capture.kernels.language.intrinsics import External, call_at, copy_bytes, ld64
from gscope.capture.kernels.language.kinds import Kind, RecordKind, record_of_ints
from gscope.capture.lfta.kernel_arguments import (
    BatchMemory,
    KernelEntry,
    PacketAddresses,
    PacketRange,
    StateArrays,
    compiled_run_records,
)
from gscope.capture.sources.block import INDEX
from gscope.capture.sources.files.file import ReadProgress
from gscope.capture.sources.files.pcap import LAYOUT, index_usual

if TYPE_CHECKING:
    from gscope.capture.sources.block import IndexAddresses
    from gscope.capture.sources.files.pcap import PcapLayout

_CLOCK_MONOTONIC = 1

_read = External("read", 64, 32, 64, 64)
_clock_gettime = External("clock_gettime", 32, 32, 64)


@kernel_part
def _monotonic_ns(clock: int) -> int:
    _clock_gettime(_CLOCK_MONOTONIC, clock)
    return ld64(clock) * 1_000_000_000 + ld64(clock + 8)


class ReadPosition(NamedTuple):
    """The file and the part of the block's data that reads fill.

    Attributes:
        descriptor: file descriptor to read from.
        filled: bytes at the beginning of the data that were read before.
        limit: bytes of the data that may be filled.
    """

    descriptor: int
    filled: int
    limit: int


class PacketTimes(NamedTuple):
    """The times that decide which packets are late and where the step of the clock ends.

    Attributes:
        latest_ns: greatest time of the packets so far.
        skew_ns: how far a packet may step back and still be on time.
        until_ns: end of the clock's step: the pump leaves a block with a packet at or after it.
        bound_ns: see ``LftaEngine.bound_ns``.
    """

    latest_ns: int
    skew_ns: int
    until_ns: int
    bound_ns: int


class PumpResult(NamedTuple):
    """What the pump did.

    Attributes:
        full: number of the LFTA whose output buffer is full, -1 for none.
        worked_ns: nanoseconds that the LFTAs worked.
        latest_ns: greatest time of the packets in the blocks that are done.
        passed: how far the pump came.
    """

    full: int
    worked_ns: int
    latest_ns: int
    passed: ReadProgress


_ENTRY = RecordKind(
    KernelEntry,
    (
        Kind.INT,
        record_of_ints(BatchMemory),
        RecordKind(StateArrays, (Kind.WORDS, Kind.ROWS)),
    ),
)
_RESULT = RecordKind(PumpResult, (*(Kind.INT,) * 3, record_of_ints(ReadProgress)))


@native_kernel(
    _ENTRY,
    Kind.INT,
    record_of_ints(ReadPosition),
    LAYOUT,
    record_of_ints(PacketTimes),
    record_of_ints(PacketAddresses),
    INDEX,
    Kind.INT,
    result=_RESULT,
)
def pump_blocks(
    lftas: KernelEntry,
    blocks: int,
    position: ReadPosition,
    layout: PcapLayout,
    times: PacketTimes,
    packets_at: PacketAddresses,
    index: IndexAddresses,
    clock: int,
) -> PumpResult:
    """Read, index and process up to ``blocks`` blocks.

    A ``read`` that returns no bytes ends the loop. Its reason (end of input or an error) is left to
    the next reader, which gets the same result.

    Args:
        lftas: the compiled LFTAs.
        blocks: number of blocks after which to return to Python.
        position: where to read from and to.
        layout: layout of the records.
        times: what decides whether packets are on time.
        packets_at: addresses of the arrays of the block.
        index: those that are filled.
        clock: address of room for two words.
    """
    filled, latest_ns = position.filled, times.latest_ns
    begin = packets_at.data
    full = -1
    count, used, wire_bytes, least, greatest = 0, 0, 0, 0, 0
    read_bytes, used_bytes, packets, passed_wire_bytes, worked_ns = 0, 0, 0, 0, 0
    for _ in range(blocks):
        got = _read(position.descriptor, begin + filled, position.limit - filled)
        if got <= 0:
            break
        read_bytes += got
        filled += got
        count, used, wire_bytes, least, greatest = index_usual(begin, filled, layout, index)
        if count == 0 or greatest >= times.until_ns:
            break
        if least < max(latest_ns, greatest) - times.skew_ns:
            break
        began_ns = _monotonic_ns(clock)
        span = PacketRange(first=0, stop=count, until_ns=times.until_ns, bound_ns=times.bound_ns)
        records = compiled_run_records(packets_at, span, lftas.memory, lftas.state)
        full = call_at(lftas.address, records)
        worked_ns += _monotonic_ns(clock) - began_ns
        if full >= 0:
            break
        packets += count
        passed_wire_bytes += wire_bytes
        latest_ns = max(latest_ns, greatest)
        count = 0
        if filled - used > used:
            # copy_bytes needs ranges that do not overlap.
            break
        copy_bytes(begin, begin + used, filled - used)
        used_bytes += used
        filled -= used
        used = 0
    passed = ReadProgress(
        read_bytes=read_bytes,
        used_bytes=used_bytes,
        packets=packets,
        wire_bytes=passed_wire_bytes,
        filled=filled,
        used=used,
        block_packets=count,
        block_wire_bytes=wire_bytes,
        least_ns=least,
        greatest_ns=greatest,
    )
    return PumpResult(full=full, worked_ns=worked_ns, latest_ns=latest_ns, passed=passed)
