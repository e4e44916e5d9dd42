"""Sizes of an LFTA's memory; together they bound the memory of a runtime."""

from __future__ import annotations

from gscope.errors import UsageError
from gscope.records import dataclass

MIN_TABLE_SLOTS = 4
"""Two buckets of two slots: the smallest table that still hashes."""


@dataclass(frozen=True, slots=True)
class LftaSettings:
    """Memory of each LFTA of an interface.

    Attributes:
        table_slots: slots of each group table, a power of two. The default keeps a flow table of
            32-byte slots (2 MB) within a second-level cache and its companion for IPv6 within the
            third.
        batch_rows: rows of an output buffer; a full buffer becomes one batch. The default keeps the
            buffers of a flow query within a second-level cache too.
        heap_bytes: bytes for the STRING values of an output buffer.
        buffers: output buffers of each LFTA; with two a writer may work on one while the kernel
            fills the other.
        slow_flush_buckets: buckets of older epochs that are flushed with each batch of packets.
    """

    table_slots: int = 1 << 16
    batch_rows: int = 1 << 14
    heap_bytes: int = 1 << 20
    buffers: int = 2
    slow_flush_buckets: int = 16

    def __post_init__(self) -> None:
        slots = self.table_slots
        if slots < MIN_TABLE_SLOTS or slots & (slots - 1):
            message = (
                f"invalid table_slots: expected a power of two of at least {MIN_TABLE_SLOTS},"
                f" got {slots!r}"
            )
            raise UsageError(message)
        for name in ("batch_rows", "heap_bytes", "buffers"):
            if getattr(self, name) < 1:
                message = f"invalid {name}: expected a positive number, got {getattr(self, name)!r}"
                raise UsageError(message)
