"""The greatest memory that a capture may use, computed before it begins.

::

    engines x (group tables + pre-samples + output buffers)
    + rings + open batches + messages that the log holds

where an engine is the LFTAs of one thread of an interface. This is an upper bound: the system does
not provide memory that no packet touches.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gscope.capture.lfta.columns import Storage
from gscope.capture.lfta.output_layout import output_layout
from gscope.capture.lfta.pre_sample_table import PreSampleTable
from gscope.capture.lfta.settings import MIN_TABLE_SLOTS
from gscope.capture.log.budget import MAX_HELD_BATCHES
from gscope.capture.sources.files.file import DEFAULT_BLOCK_BYTES
from gscope.errors import UsageError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.lfta.settings import LftaSettings
    from gscope.capture.settings import CaptureSettings
    from gscope.queries.plan.program import Lfta

HELD_MESSAGE_BYTES = 600
"""Memory of a batch's message until all readers have acknowledged it, in bytes."""

FILE_BLOCKS = 8
"""Largest number of blocks by which a reader is ahead of the LFTAs."""

SHARE_OF_MACHINE = 0.5
"""Default limit of a capture's memory, as a share of the machine's."""


@dataclass(frozen=True, slots=True)
class PlannedMemory:
    """The memory that a capture may use, in bytes.

    Attributes:
        tables: group tables of all engines.
        buffers: output buffers of all engines.
        rings: rings and blocks that hold packets before the LFTAs.
        open_batches: open batches of the log.
        messages: messages of the log.
        pre_samples: tables of pre-samples of all engines.
    """

    tables: int
    buffers: int
    rings: int
    open_batches: int
    messages: int = MAX_HELD_BATCHES * HELD_MESSAGE_BYTES
    pre_samples: int = 0

    @property
    def total(self) -> int:
        """The sum of all parts."""
        tables = self.tables + self.pre_samples
        return tables + self.buffers + self.rings + self.open_batches + self.messages


def planned_memory(
    lftas: Sequence[Lfta],
    settings: CaptureSettings,
    sizes: LftaSettings,
    slot_bytes: Sequence[Sequence[int]],
) -> PlannedMemory:
    """Return the memory that a capture with these LFTAs may use.

    Args:
        lftas: the LFTAs of the program.
        settings: settings of the capture.
        sizes: sizes of the tables and buffers of each LFTA.
        slot_bytes: for each LFTA, the bytes of a slot in each of its tables.
    """
    threads = {
        each.name: 1 if each.device is None else each.device.fanout for each in settings.interfaces
    }
    tables = buffers = pre_samples = 0
    for lfta, widths in zip(lftas, slot_bytes, strict=True):
        engines = sum(threads.get(name, 0) for name in lfta.interfaces)
        tables += engines * sum(widths) * sizes.table_slots
        buffers += engines * sizes.buffers * _buffer_bytes(lfta, sizes)
        if lfta.pre_sample is not None:
            pre_samples += engines * PreSampleTable.of(lfta, lfta.pre_sample).bytes
    block_bytes = settings.block_bytes or DEFAULT_BLOCK_BYTES
    rings = sum(
        FILE_BLOCKS * block_bytes
        if each.device is None
        else each.device.ring_bytes * each.device.fanout
        for each in settings.interfaces
    )
    return PlannedMemory(tables, buffers, rings, settings.open_bytes, pre_samples=pre_samples)


def ensure_fits(
    lftas: Sequence[Lfta],
    settings: CaptureSettings,
    sizes: LftaSettings,
    slot_bytes: Sequence[Sequence[int]],
) -> PlannedMemory:
    """Return the memory that a capture may use, if that is within its limit.

    Raises:
        UsageError: it is not; the message says how many slots would fit.
    """
    limit = settings.memory_bytes or default_memory_bytes()
    planned = planned_memory(lftas, settings, sizes, slot_bytes)
    if planned.total <= limit:
        return planned
    spare = limit - (planned.total - planned.tables)
    slots = sizes.table_slots
    while slots >= MIN_TABLE_SLOTS and planned.tables // sizes.table_slots * slots > spare:
        slots //= 2
    remedy = (
        f"use at most --table-slots {slots}"
        if slots >= MIN_TABLE_SLOTS and planned.tables
        else "use smaller rings (--ring, --open)"
    )
    parts = {
        "group tables": planned.tables,
        "pre-samples": planned.pre_samples,
        "output buffers": planned.buffers,
        "rings": planned.rings,
        "open batches": planned.open_batches,
        "messages": planned.messages,
    }
    listed = ", ".join(f"{name} {_megabytes(size)}" for name, size in parts.items() if size)
    message = (
        f"the capture daemon may need {_megabytes(planned.total)} of memory, but its limit is "
        f"{_megabytes(limit)} ({listed}); {remedy}, or raise the limit with --memory"
    )
    raise UsageError(message)


def default_memory_bytes() -> int:
    """Return the default limit: half of the machine's memory."""
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * SHARE_OF_MACHINE)


def _buffer_bytes(lfta: Lfta, sizes: LftaSettings) -> int:
    """Return the bytes of an output buffer; heaps of text columns may double until a batch fits."""
    layout = output_layout(lfta, lfta.interfaces[0] if lfta.interfaces else "")
    widths = sum(c.storage.width + c.is_nullable for c in layout.columns)
    widths += Storage.FLOAT.width * layout.has_rate
    texts = sum(c.storage is Storage.STRING for c in layout.columns)
    return (sizes.batch_rows + 1) * widths + texts * sizes.heap_bytes


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MB"
