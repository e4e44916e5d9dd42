"""Pieces on disk: Arrow files, written once, from whose older end rows leave.

A row names its group by an identity that the group keeps while it is live. A file is read batch by
batch. Pieces of the front are written from the youngest to the oldest, as a flip meets them, so
their older end is the last batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.engine.windows.layout import Numbers
from gscope.engine.windows.pieces import Piece
from gscope.errors import EngineError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from gscope.engine.windows.layout import Layout

    Array = NDArray[Any]

BATCH_ROWS = 16_384
"""About how many rows a batch has: a step with few rows that leave reads at least one batch."""


@dataclass(frozen=True, slots=True)
class SliceFile:
    """A file of pieces, and how much of it has left.

    Attributes:
        name: the path of the file, relative to the folder of all files.
        rows: the rows of the whole file.
        size_bytes: the size of the file.
        batches: the number of batches.
        last: the label of its youngest piece.
        is_front: whether its rows are in the front.
        batch: the batches that have left, from the older end.
        row: the rows that have left of the batch after these.
    """

    name: str
    rows: int
    size_bytes: int
    batches: int
    last: int
    is_front: bool
    batch: int = 0
    row: int = 0


class OpenFiles:
    """Files of pieces that are open for reading, so that no step opens them again.

    The index of a file is read when it is opened, and is long if the file has many batches.

    Args:
        folder: the folder to which names are relative.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, tuple[pa.OSFile, pa.ipc.RecordBatchFileReader]] = {}

    def batch(self, name: str, number: int) -> pa.RecordBatch:
        """Return a batch of a file.

        Raises:
            EngineError: the file is missing or unreadable.
        """
        try:
            if name not in self._files:
                source = pa.OSFile(str(self.folder / name))
                self._files[name] = source, pa.ipc.open_file(source)
            return self._files[name][1].get_batch(number)
        except (OSError, pa.ArrowException) as error:
            message = f"cannot read slices of a window in {self.folder / name}: {error}"
            raise EngineError(message) from error

    def keep(self, names: Iterable[str]) -> None:
        """Close all files but those of ``names``; a deleted file takes disk while it is open."""
        for name in self._files.keys() - set(names):
            self._files.pop(name)[0].close()


class SliceReader:
    """The pieces of a file that have not left, from the oldest to the youngest.

    Args:
        opened: reads the file.
        file: the file.
        layout: the numbers of a row.
        place_of: returns the places of identities.

    Attributes:
        file: the file, with what has left of it so far.
    """

    def __init__(
        self,
        opened: OpenFiles,
        file: SliceFile,
        layout: Layout,
        place_of: Callable[[Array], Array],
    ) -> None:
        self.file = file
        self._opened = opened
        self._layout = layout
        self._place_of = place_of
        self._rows: _Rows | None = None

    def pop_before(self, label: int) -> Iterator[Piece]:
        """Yield the pieces below ``label``, which leave."""
        if self.file.last < label:
            yield from self._rest()
            self.file = replace(self.file, batch=self.file.batches, row=0)
            return
        while True:
            if self._rows is None:
                self._rows = self._read(self.file.batch, self.file.row)
            for piece in self._rows.pop_before(label):
                self.file = replace(self.file, row=self.file.row + len(piece.places))
                yield piece
            if self._rows.starts:
                return
            self.file = replace(self.file, batch=self.file.batch + 1, row=0)
            self._rows = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in their order in the file, which is not of the front; they stay."""
        for batch in range(self.file.batch, self.file.batches):
            row = self.file.row if batch == self.file.batch else 0
            yield self._opened.batch(self.file.name, batch).slice(row)

    def reversed(self) -> Iterator[Piece]:
        """Yield all pieces from the youngest to the oldest; they stay."""
        for batch in range(self.file.batches - 1, self.file.batch - 1, -1):
            row = self.file.row if batch == self.file.batch else 0
            yield from reversed(list(self._read(batch, row).pop_all()))

    def _rest(self) -> Iterator[Piece]:
        for batch in range(self.file.batch, self.file.batches):
            row = self.file.row if batch == self.file.batch else 0
            yield from self._read(batch, row).pop_all()

    def _read(self, batch: int, row: int) -> _Rows:
        """Return the rows of a batch, counted from the older end, from ``row`` on."""
        number = self.file.batches - 1 - batch if self.file.is_front else batch
        rows = self._opened.batch(self.file.name, number).slice(row)
        return _Rows.of(rows, self._layout, self._place_of)


class SliceWriter:
    """A file of pieces that is written batch by batch; pieces of the front youngest first.

    Args:
        folder: the folder to which names are relative.
        name: the name of the file, which is created.
        ids: the identity of the group at each place.
        is_front: whether pieces come youngest first, with ``younger``.
    """

    def __init__(self, folder: Path, name: str, ids: Array, *, is_front: bool) -> None:
        self._path = folder / name
        self._name = name
        self._ids = ids
        self._is_front = is_front
        self._waiting: list[Piece] = []
        self._waiting_rows = 0
        self._rows = self._batches = 0
        self._last: int | None = None
        self._sink: pa.OSFile | None = None
        self._writer: pa.ipc.RecordBatchFileWriter | None = None

    def write(self, pieces: Iterable[Piece]) -> None:
        """Append pieces."""
        for piece in pieces:
            self._waiting.append(piece)
            self._waiting_rows += len(piece.places)
            if self._last is None or piece.label > self._last:
                self._last = piece.label
            if self._waiting_rows >= BATCH_ROWS:
                self._flush()

    def copy(self, readers: Iterable[SliceReader]) -> None:
        """Append the rows that are left of files, oldest first; nothing else is appended."""
        waiting: list[pa.RecordBatch] = []
        for reader in readers:
            self._last = reader.file.last
            for batch in reader.batches():
                waiting.append(batch)
                if sum(each.num_rows for each in waiting) >= BATCH_ROWS:
                    self._append(waiting)
                    waiting = []
        if waiting:
            self._append(waiting)

    def close(self) -> SliceFile | None:
        """Complete the file and describe it; None if there was no piece."""
        if self._waiting:
            self._flush()
        if self._writer is None or self._sink is None or self._last is None:
            return None
        self._writer.close()
        self._sink.close()
        size = self._path.stat().st_size
        return SliceFile(
            self._name,
            self._rows,
            size,
            self._batches,
            self._last,
            self._is_front,
        )

    def _flush(self) -> None:
        pieces = self._waiting[::-1] if self._is_front else self._waiting
        self._append([_batch(pieces, self._ids)])
        self._waiting, self._waiting_rows = [], 0

    def _append(self, batches: list[pa.RecordBatch]) -> None:
        (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
        for first in range(0, batch.num_rows, 4 * BATCH_ROWS):
            self._write(batch, first)

    def _write(self, batch: pa.RecordBatch, first: int) -> None:
        part = batch
        if batch.num_rows > 4 * BATCH_ROWS:
            # Cut from the end that is written first.
            end = batch.num_rows - first if self._is_front else first + 4 * BATCH_ROWS
            start = max(0, end - 4 * BATCH_ROWS) if self._is_front else first
            part = batch.slice(start, end - start)
        if self._writer is None:
            self._sink = pa.OSFile(str(self._path), "wb")
            self._writer = pa.ipc.new_file(self._sink, part.schema)
        self._writer.write_batch(part)
        self._rows += part.num_rows
        self._batches += 1


def number_columns(numbers: Numbers) -> dict[str, pa.Array]:
    """Return numbers as columns of a file."""
    columns = {"sums": as_column(numbers.sums)}
    if numbers.xors.shape[1]:
        columns["xors"] = as_column(numbers.xors)
    return columns | {f"s{n}": as_column(values) for n, values in enumerate(numbers.stacked)}


def numbers_of(rows: pa.RecordBatch | pa.Table, layout: Layout) -> Numbers:
    """Return the numbers in columns of a file."""
    count = rows.num_rows
    xors = as_array(rows["xors"]) if layout.xored else np.empty((count, 0), np.int64)
    stacked = [as_array(rows[f"s{n}"]) for n in range(len(layout.stacked))]
    return Numbers(as_array(rows["sums"]), xors, stacked)


def as_column(values: Array) -> pa.Array:
    """Return an array of integers as a column, of lists if it has two dimensions."""
    if values.ndim == 1:
        return pa.array(values)
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


def as_array(column: pa.Array | pa.ChunkedArray) -> Array:
    """Return the array that ``as_column`` made a column, writable."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_fixed_size_list(column.type):
        return np.array(column.to_numpy())
    values = np.array(column.flatten().to_numpy())
    return values.reshape(-1, column.type.list_size)


def _batch(pieces: list[Piece], ids: Array) -> pa.RecordBatch:
    numbers = Numbers.joined([piece.numbers for piece in pieces])
    lengths = [len(piece.places) for piece in pieces]
    columns = {
        "label": pa.array(np.repeat(np.array([p.label for p in pieces], np.int64), lengths)),
        "id": pa.array(ids[np.concatenate([piece.places for piece in pieces])]),
        **number_columns(numbers),
    }
    younger = [piece.younger for piece in pieces if piece.younger is not None]
    if younger:
        for number, parts in enumerate(zip(*younger, strict=True)):
            columns[f"y{number}"] = as_column(np.concatenate(parts))
    return pa.RecordBatch.from_pydict(columns)


@dataclass(slots=True)
class _Rows:
    """The rows of a batch that have not left, oldest first.

    Attributes:
        labels: the labels of all rows, ascending.
        places: the places of all rows.
        numbers: the numbers of all rows.
        younger: as of a piece, of all rows.
        starts: where the pieces that have not left start, the oldest last.
    """

    labels: Array
    places: Array
    numbers: Numbers
    younger: list[Array] | None
    starts: list[int]

    @classmethod
    def of(cls, rows: pa.RecordBatch, layout: Layout, place_of: Callable[[Array], Array]) -> _Rows:
        labels = rows["label"].to_numpy()
        younger = None
        if layout.stacked and "y0" in rows.schema.names:
            younger = [as_array(rows[f"y{n}"]) for n in range(len(layout.stacked))]
        starts = np.append(0, np.flatnonzero(np.diff(labels)) + 1)
        return cls(
            labels,
            place_of(rows["id"].to_numpy()),
            numbers_of(rows, layout),
            younger,
            starts.tolist()[::-1] if len(labels) else [],
        )

    def pop_before(self, label: int) -> Iterator[Piece]:
        """Yield and forget the pieces below ``label``, oldest first."""
        while self.starts and self.labels[self.starts[-1]] < label:
            yield self._pop()

    def pop_all(self) -> Iterator[Piece]:
        """Yield and forget all pieces, oldest first."""
        while self.starts:
            yield self._pop()

    def _pop(self) -> Piece:
        first = self.starts.pop()
        end = self.starts[-1] if self.starts else len(self.labels)
        return Piece(
            int(self.labels[first]),
            self.places[first:end],
            self.numbers.part(first, end),
            None if self.younger is None else [each[first:end] for each in self.younger],
        )
