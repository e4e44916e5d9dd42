"""Builds the LFTAs of interfaces; all interfaces of a run share one compiled kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from gscope.capture.interface.divided_engine import DividedEngine
from gscope.capture.interface.division import parts_of
from gscope.capture.interface.memory_budget import ensure_fits
from gscope.capture.lfta.cache import compiling_noted, load_kernel, prune_kernels
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.lfta.settings import LftaSettings
from gscope.capture.shedding.thresholds import initial_sampling
from gscope.capture.sources.block import PADDING_BYTES, Block
from gscope.capture.sources.files.sizes import stored_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.capture.lfta.columns import ColumnBatch
    from gscope.capture.lfta.runtime import LftaEngine
    from gscope.capture.saving.packet_file import PacketFile
    from gscope.capture.settings import CaptureSettings
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.process_events import KernelCompiling


class LftaEngineFactory(Protocol):
    """A function that builds the LFTAs of an interface: compiled, or interpreted as an oracle."""

    def __call__(self, interface: str, emit: Callable[[str, ColumnBatch], None]) -> LftaEngine:
        """Return the LFTAs of ``interface``; ``emit`` takes their output and releases it."""


def compiled_engines(
    program: Program,
    settings: CaptureSettings,
    packet_file: PacketFile | None = None,
    on_compile: Callable[[KernelCompiling], object] = lambda _: None,
    *,
    is_live: bool = False,
) -> LftaEngineFactory:
    """Compile or load the kernel of a program, and return a factory of LFTAs that run it.

    Args:
        program: the compiled query set.
        settings: sizes of the LFTAs' memory, and the interfaces.
        packet_file: where packets of selections are saved; None to save none.
        on_compile: called before a kernel is compiled, which takes seconds.
        is_live: whether packets will not wait; a new kernel is then optimised at once, before the
            load comes.

    Raises:
        UsageError: the LFTAs may need more memory than the settings allow.
        UnsupportedError: an LFTA needs what kernels do not support.
    """
    sizes = LftaSettings(
        table_slots=_table_slots(settings),
        batch_rows=settings.output_rows or LftaSettings().batch_rows,
    )
    queries = tuple(dict.fromkeys(lfta.query for lfta in program.lftas))
    with compiling_noted(queries, on_compile):
        marks = None if packet_file is None else packet_file.marks
        kernel = load_kernel(program.lftas, marks, is_quick=True)
        slots = dict(zip(kernel.lftas, kernel.slot_bytes, strict=True))
        ensure_fits(program.lftas, settings, sizes, [slots[lfta.name] for lfta in program.lftas])
        sampling = initial_sampling(program, settings.shedding)

        def together(interface: str, emit: Callable[[str, ColumnBatch], None]) -> LftaEngine:
            if packet_file is None:
                return LftaRuntime(program.lftas, interface, sizes, kernel, emit, sampling=sampling)
            from gscope.capture.saving.packet_saver import PacketSaver

            marked = PacketSaver(packet_file, interface)
            rows = marked.take_rows if packet_file.is_second_pass else emit
            return LftaRuntime(program.lftas, interface, sizes, kernel, rows, marked, sampling)

        parts = 1 if packet_file is not None else parts_of(program, settings)

        def in_parts(interface: str, emit: Callable[[str, ColumnBatch], None]) -> LftaEngine:
            lftas = [lfta for lfta in program.lftas if interface in lfta.interfaces]
            shares = (lftas[part::parts] for part in range(parts))
            return DividedEngine(
                [LftaRuntime(share, interface, sizes, kernel, emit) for share in shares],
                [lfta.name for lfta in lftas],
            )

        first = settings.interfaces[0].name
        together(first, lambda _lfta, batch: batch.release()).process(_no_packets(), 0)
        # Flushes no LFTA. It loads the flush kernel before the first epoch ends: packets do not
        # wait for a compiler.
        kernel.tiers.functions.flush(-1, np.zeros(1, np.int64), 0)
    if is_live:
        kernel.tiers.optimize()
    prune_kernels()
    return together if parts == 1 else in_parts


def _table_slots(settings: CaptureSettings) -> int:
    """Return the slots of each group table.

    They are fewer for a capture that cannot fill as many as allowed. Groups are spread over all
    pages of a table, and the system has to provide each page. The tables of fifty queries took half
    of the time that 20,000 packets take.
    """
    most = settings.table_slots or LftaSettings().table_slots
    enough = LEAST_SLOTS
    for interface in settings.interfaces:
        stored = stored_bytes(interface.files) if interface.files else None
        if stored is None or stored[1] or interface.reads_flows:
            return most
        enough = max(enough, 1 << (stored[0] // BYTES_PER_SLOT).bit_length())
    return min(most, enough)


BYTES_PER_SLOT = 128
"""Bytes of a capture for each slot: few captures have as many groups as packets of this length."""

LEAST_SLOTS = 1 << 10


def _no_packets() -> Block:
    numbers = np.zeros(1, np.int32)
    times = np.zeros(1, np.int64)
    return Block(np.zeros(PADDING_BYTES, np.uint8), times, numbers, numbers, times, numbers)
