"""Columnar output of an LFTA: the layout of a buffer, and its conversion to Arrow."""

from __future__ import annotations

import queue
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program_sampling import RATE_COLUMN
from gscope.queries.streams.messages import Extent
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

INTERFACE_COLUMN = "interface"


class Storage(Enum):
    """The representation of a column's values in memory; the value is (bytes a row, Arrow type)."""

    BYTE = (1, pa.bool_())
    INT32 = (4, pa.int32())
    INT64 = (8, pa.int64())
    FLOAT = (8, pa.float64())
    IP = (16, pa.binary(16))
    STRING = (4, pa.binary())

    @property
    def width(self) -> int:
        """Bytes of a row; of a STRING the end of its bytes in the heap."""
        return int(self.value[0])

    @property
    def arrow_type(self) -> Any:
        """The Arrow type a column of it becomes."""
        return self.value[1]


STORAGE = {
    GsqlType.BOOL: Storage.BYTE,
    GsqlType.INT: Storage.INT64,
    GsqlType.FLOAT: Storage.FLOAT,
    GsqlType.STRING: Storage.STRING,
    GsqlType.IP: Storage.IP,
    GsqlType.MAC: Storage.INT64,
    GsqlType.TIMESTAMP: Storage.INT64,
    GsqlType.INTERVAL: Storage.INT64,
    GsqlType.NULL: Storage.BYTE,
}


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """One column of an output buffer.

    Attributes:
        is_nullable: whether it has a byte for each row that says whether the value is valid.
        is_temporal: whether batches state its extent.
    """

    name: str
    storage: Storage
    is_nullable: bool
    is_temporal: bool

    @property
    def is_fixed(self) -> bool:
        """Whether Arrow can use it unchanged, wherever its rows begin."""
        return not self.is_nullable and self.storage not in (Storage.BYTE, Storage.STRING)


@dataclass(frozen=True, slots=True)
class OutputLayout:
    """The columns of an LFTA's output in schema order.

    Attributes:
        columns: the columns.
        interface: what fills the interface column; None without one.
        has_rate: whether each row states the rate at which its packets were sampled.
    """

    columns: tuple[ColumnLayout, ...]
    interface: str | None = None
    has_rate: bool = False

    @property
    def arrow_schema(self) -> Any:
        """The Arrow schema of its batches."""
        fields = [pa.field(c.name, c.storage.arrow_type, c.is_nullable) for c in self.columns]
        if self.interface is not None:
            fields.append(pa.field(INTERFACE_COLUMN, _INTERFACE_TYPE, nullable=False))
        if self.has_rate:
            fields.append(pa.field(RATE_COLUMN, pa.float64(), nullable=False))
        return pa.schema(fields)


_INTERFACE_TYPE = pa.dictionary(pa.int32(), pa.binary())


class OutputBuffer:
    """Memory for ``rows`` rows of one LFTA, which the kernel fills at the given addresses.

    Attributes:
        values: one array of bytes for each column; of a STRING column the ends of its values, one
            more than rows.
        validity: one byte a row for nullable columns, None for others.
        heaps: bytes of STRING columns, None for others.
        addresses: addresses of values, validity (or 0) and heap (or 0) of each column in turn, as
            in an LFTA's state.
    """

    def __init__(self, layout: OutputLayout, rows: int, heap_bytes: int) -> None:
        self.layout = layout
        self.schema = layout.arrow_schema
        self.rows = rows
        # Memory that is never written is never touched: a small answer costs address space only.
        self.values = [np.empty((rows + 1) * c.storage.width, np.uint8) for c in layout.columns]
        self.validity = [
            np.empty(rows, np.uint8) if c.is_nullable else None for c in layout.columns
        ]
        self.heap_bytes = 0
        self.heaps: list[NDArray[np.uint8] | None] = [None] * len(layout.columns)
        self._whole: Any = None
        self._rate = 1.0
        self.ensure_heap(heap_bytes)
        self._note_addresses()

    def ensure_heap(self, heap_bytes: int) -> None:
        """Enlarge the heaps to ``heap_bytes``; their contents are lost."""
        if heap_bytes <= self.heap_bytes:
            return
        self.heap_bytes = heap_bytes
        for i, column in enumerate(self.layout.columns):
            if column.storage is Storage.STRING:
                self.heaps[i] = np.empty(heap_bytes, np.uint8)
                self.values[i][:4] = 0
        self._note_addresses()

    def set_rate(self, rate: float) -> None:
        """Set the rate of the packets of all rows; called while the buffer is empty."""
        if rate != self._rate:
            self._rate, self._whole = rate, None

    def arrow_rows(self, first: int, rows: int) -> Any:
        """Return rows as an Arrow record batch that shares this memory."""
        if not all(column.is_fixed for column in self.layout.columns):
            return self._arrow_batch(first, rows)
        # The layout of these rows never depends on their contents, so one batch is sliced for all.
        if self._whole is None:
            self._whole = self._arrow_batch(0, self.rows)
        return self._whole.slice(first, rows)

    def _arrow_batch(self, first: int, rows: int) -> Any:
        arrays = [_arrow_array(self, i, first, rows) for i in range(len(self.layout.columns))]
        if self.layout.interface is not None:
            names = pa.array([self.layout.interface.encode()], pa.binary())
            zeros = pa.array(np.zeros(rows, np.int32))
            arrays.append(pa.DictionaryArray.from_arrays(zeros, names))
        if self.layout.has_rate:
            arrays.append(pa.array(np.full(rows, self._rate)))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _note_addresses(self) -> None:
        """Store addresses, which numpy takes microseconds to compute."""
        columns = zip(self.values, self.validity, self.heaps, strict=True)
        areas: list[NDArray[Any] | None] = [area for column in columns for area in column]
        self.addresses = np.array(
            [0 if area is None else area.ctypes.data for area in areas], np.int64
        )


@dataclass(slots=True)
class ColumnBatch:
    """Rows that an LFTA emitted, still in the buffer that the kernel filled.

    The receiver owns them until it calls ``release``, once, from any thread; until then the kernel
    does not write to their buffer, and what ``to_arrow`` returned stays valid. A runtime waits for
    releases when all buffers of an LFTA are in use.

    Attributes:
        lfta: name of the LFTA.
        rows: number of rows, at least one.
        extents: least and greatest value of each temporal column.
    """

    lfta: str
    rows: int
    extents: tuple[Extent, ...]
    _first: int
    _buffer: OutputBuffer
    _release: Callable[[], None]

    def to_arrow(self) -> Any:
        """Return the rows as an Arrow record batch that shares this batch's memory."""
        return self._buffer.arrow_rows(self._first, self.rows)

    def release(self) -> None:
        """Return the rows to the runtime; the batch must not be used afterwards."""
        self._release()


def column_batches(
    lfta: str,
    buffer: OutputBuffer,
    ranges: Sequence[tuple[int, int]],
    give_back: Callable[[OutputBuffer], None],
) -> list[ColumnBatch]:
    """Return rows of ``buffer`` as batches, one for each range (first, stop) that is not empty.

    ``give_back`` is called when all of them have been released.
    """
    filled = [(first, end) for first, end in ranges if first < end]
    held: queue.SimpleQueue[None] = queue.SimpleQueue()
    for _ in filled[1:]:
        held.put(None)

    def release() -> None:
        try:
            held.get_nowait()
        except queue.Empty:
            give_back(buffer)

    return [
        ColumnBatch(lfta, end - first, _extents(buffer, first, end), first, buffer, release)
        for first, end in filled
    ]


def _extents(buffer: OutputBuffer, first: int, end: int) -> tuple[Extent, ...]:
    return tuple(
        _extent(column, buffer, i, first, end)
        for i, column in enumerate(buffer.layout.columns)
        if column.is_temporal
    )


def _extent(column: ColumnLayout, buffer: OutputBuffer, index: int, first: int, end: int) -> Extent:
    width = column.storage.width
    dtype = np.int32 if column.storage is Storage.INT32 else np.int64
    values = buffer.values[index][first * width : end * width].view(dtype)
    return Extent(column.name, int(values.min()), int(values.max()))


def _arrow_array(buffer: OutputBuffer, index: int, first: int, rows: int) -> Any:
    storage = buffer.layout.columns[index].storage
    validity = buffer.validity[index]
    bitmap = None
    if validity is not None:
        valid = validity[first : first + rows]
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    width = storage.width
    data = buffer.values[index][first * width : (first + rows) * width]
    if storage is Storage.BYTE:
        buffers = [bitmap, pa.py_buffer(np.packbits(data, bitorder="little"))]
    elif storage is Storage.STRING:
        # The ends of values, preceded by the beginning of the first.
        ends = buffer.values[index][first * width : (first + rows + 1) * width]
        heap = buffer.heaps[index]
        buffers = [bitmap, pa.py_buffer(ends), pa.py_buffer(heap)]
    else:
        buffers = [bitmap, pa.py_buffer(data)]
    return pa.Array.from_buffers(storage.arrow_type, rows, buffers)
